// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// List returns the objects that a user may see. A user who may see few sets costs those sets, never the fleet.
func (r *Reader) List(ctx context.Context, who user.Info, opts storage.ListOptions) (runtime.Object, error) {
	list, _, err := r.list(ctx, who, opts)
	return list, err
}

// list also returns the sets that the user may see at the version of the list.
func (r *Reader) list(ctx context.Context, who user.Info, opts storage.ListOptions) (runtime.Object, rbac.Names, error) {
	wantsOneVersion := isPinned(opts)
	for {
		names, since, err := r.Rules.history.now(ctx, who)
		if err != nil {
			return nil, names, err
		}
		result := r.Resource.NewList()
		if names.All {
			all := opts
			var key string
			key, all.Recursive = r.Resource.Range(opts)
			err = r.Objects.GetList(ctx, key, all, result)
		} else {
			err = r.listSets(ctx, opts, names, result)
		}
		if err != nil {
			return nil, names, err
		}
		// The list has to be shown by the rules of its own version, or a watch from there would miss a change.
		version, err := versioner.ParseResourceVersion(versionOf(result))
		if err != nil {
			return nil, names, err
		}
		if then, known := r.Rules.history.at(version, who); known && then.Equal(names) {
			return result, names, nil
		}
		switch {
		case wantsOneVersion:
			return nil, names, errRulesNotKept
		case version < since:
			opts.ResourceVersion = strconv.FormatUint(since, 10)
			opts.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		}
	}
}

// isPinned says that a list is wanted at one version.
func isPinned(opts storage.ListOptions) bool {
	version := opts.ResourceVersion
	return opts.Predicate.Continue != "" || opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		opts.ResourceVersionMatch == "" && opts.Predicate.Limit > 0 && version != "" && version != "0"
}

// listSets lists the objects of the named sets, in the order and with the continuation of a list of all.
func (r *Reader) listSets(ctx context.Context, opts storage.ListOptions, names rbac.Names, result runtime.Object) error {
	sets := slices.DeleteFunc(names.Sorted(), func(set string) bool { return !position.Possible(set) })
	switch _, set, possible := r.Resource.Selected(opts.Predicate.Field); {
	case !possible, set != "" && !names.Has(set):
		sets = nil
	case set != "":
		sets = []string{set}
	}
	// Keys end the set's name with a slash, which sorts before some characters of a name: order as the keys do.
	slices.SortFunc(sets, func(a, b string) int { return strings.Compare(a+"/", b+"/") })

	from := ""
	if opts.Predicate.Continue != "" {
		key, version, err := r.Resource.DecodeContinue(opts.Predicate.Continue)
		if err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
		}
		from = key
		opts.ResourceVersionMatch = metav1.ResourceVersionMatchExact
		opts.ResourceVersion = strconv.FormatInt(version, 10)
		if version <= 0 {
			opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
		}
	}
	if len(sets) == 0 {
		// Nothing to show, but the version from which a watch can go on.
		return r.listRange(ctx, opts, r.Resource.Nothing(), "", 0, result)
	}
	// The pages are put together at the end: to append each would copy all that is there again and again.
	var pages []runtime.Object
	defer func() { join(pages, result) }()
	shown, all := int64(0), listMeta(result)
	for i, set := range sets {
		start := ""
		if from != "" {
			switch {
			case strings.HasPrefix(from, r.Resource.SetKey(set)):
				start = from
			case r.Resource.SetKey(set) < from:
				continue
			}
		}
		limit := int64(0)
		if opts.Predicate.Limit > 0 {
			limit = opts.Predicate.Limit - shown
		}
		page := r.Resource.NewList()
		if err := r.listRange(ctx, opts, r.Resource.SetKey(set), start, limit, page); err != nil {
			return err
		}
		pages, shown = append(pages, page), shown+int64(meta.LenList(page))
		all.SetResourceVersion(versionOf(page))
		// All ranges are read at the version of the first.
		opts.ResourceVersion, opts.ResourceVersionMatch = versionOf(page), metav1.ResourceVersionMatchExact
		version, err := strconv.ParseInt(versionOf(page), 10, 64)
		if err != nil {
			return err
		}
		more := ""
		switch {
		case listMeta(page).GetContinue() != "":
			key, _, err := storage.DecodeContinue(listMeta(page).GetContinue(), r.Resource.SetKey(set))
			if err != nil {
				return err
			}
			more = key
		case opts.Predicate.Limit > 0 && shown >= opts.Predicate.Limit && i+1 < len(sets):
			// Before the set's first object; a token cannot end with the slash alone.
			more = r.Resource.SetKey(sets[i+1]) + "\x00"
		}
		if more != "" {
			token, err := r.Resource.EncodeContinue(more, version)
			all.SetContinue(token)
			return err
		}
	}
	if versionOf(result) == "" {
		return r.listRange(ctx, opts, r.Resource.Nothing(), "", 0, result)
	}
	return nil
}

// listRange lists one range, from a key in it (or its beginning).
func (r *Reader) listRange(ctx context.Context, opts storage.ListOptions, key, from string, limit int64, page runtime.Object) error {
	opts.Predicate.Limit, opts.Predicate.Continue = limit, ""
	if from != "" {
		version, err := strconv.ParseInt(opts.ResourceVersion, 10, 64)
		if err != nil {
			version = -1
		}
		if opts.Predicate.Continue, err = storage.EncodeContinue(from, key, version); err != nil {
			return err
		}
		opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
	}
	return r.Objects.GetList(ctx, key, opts, page)
}
