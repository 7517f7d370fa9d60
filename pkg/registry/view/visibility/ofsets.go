// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"iter"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// OfSets has all objects of some sets, and which of them a user sees. It is for results that are computed from all of them and shown to the user in
// part.
type OfSets struct {
	what  visibleObjects
	lists map[string]runtime.Object
	// in has all sets that each object is in, including those that were not requested.
	in map[string][]string
}

// OfSets reads the objects of sets of a resource that is seen by name, and what the user sees by the rules of the same version.
func (r *Reader) OfSets(ctx context.Context, who user.Info, sets []string) (*OfSets, error) {
	from := storage.ListOptions{Recursive: true, Predicate: storage.Everything}
	for {
		what, since, err := r.now(ctx, who)
		if err != nil {
			return nil, err
		}
		result := &OfSets{what: what, lists: map[string]runtime.Object{}, in: map[string][]string{}}
		version, err := r.readSets(ctx, from, sets, result)
		if err != nil {
			return nil, err
		}
		if then, known := r.rules().at(version, who); known && then.same(what) {
			return result, nil
		}
		if version < since {
			from.ResourceVersion, from.ResourceVersionMatch = strconv.FormatUint(since, 10), metav1.ResourceVersionMatchNotOlderThan
		}
	}
}

// readSets reads all sets at the version of the first.
func (r *Reader) readSets(ctx context.Context, opts storage.ListOptions, sets []string, result *OfSets) (uint64, error) {
	if len(sets) == 0 {
		nothing := r.Resource.NewList()
		if err := r.Objects.GetList(ctx, r.Resource.Nothing(), opts, nothing); err != nil {
			return 0, err
		}
		return versioner.ParseResourceVersion(versionOf(nothing))
	}
	for _, set := range sets {
		list, key := r.Resource.NewList(), r.Resource.Nothing()
		if position.Possible(set) {
			key = r.Resource.SetKey(set)
		}
		if err := r.Objects.GetList(ctx, key, opts, list); err != nil {
			return 0, err
		}
		opts.ResourceVersion, opts.ResourceVersionMatch = versionOf(list), metav1.ResourceVersionMatchExact
		for row := range each(list) {
			if result.in[row.GetName()] == nil {
				result.in[row.GetName()] = position.RowSets(row)
			}
			position.Plain(row)
		}
		result.lists[set] = list
	}
	return versioner.ParseResourceVersion(opts.ResourceVersion)
}

// Each iterates over the objects of one of the sets, ordered by name, independent of their visibility. They share everything except their outermost
// struct with a cache.
func (o *OfSets) Each(set string) iter.Seq[generic.Object] {
	if o.lists[set] == nil {
		return func(func(generic.Object) bool) {}
	}
	return each(o.lists[set])
}

// Shows reports whether the user sees an object of one of the sets.
func (o *OfSets) Shows(name string) bool {
	in, known := o.in[name]
	return known && (o.what.byName.Has(name) || slices.ContainsFunc(in, o.what.Has))
}

// ShowsSet reports whether the rules show the user all objects of a set, whatever its content is.
func (o *OfSets) ShowsSet(set string) bool { return o.what.byName.All || o.what.Has(set) }

// ShowsAll reports whether the rules show the user the objects of all sets.
func (o *OfSets) ShowsAll() bool { return o.what.byName.All || o.what.All }
