// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// List returns the objects that a user may see. For a user who may see few sets it reads those sets, never the whole fleet.
func (r *Reader) List(ctx context.Context, who user.Info, opts storage.ListOptions) (runtime.Object, error) {
	list, _, err := r.list(ctx, who, opts)
	return list, err
}

// list also returns what the user may see at the version of the list.
func (r *Reader) list(ctx context.Context, who user.Info, opts storage.ListOptions) (runtime.Object, visibleObjects, error) {
	wantsOneVersion, rules := isPinned(opts), r.rules()
	for {
		what, since, err := r.now(ctx, who)
		if err != nil {
			return nil, what, err
		}
		result := r.Resource.NewList()
		if err := r.listSeen(ctx, opts, what, result); err != nil {
			return nil, what, err
		}
		// The list must be filtered by the rules of its own version, or a watch from there would miss a change.
		version, err := versioner.ParseResourceVersion(versionOf(result))
		if err != nil {
			return nil, what, err
		}
		if then, known := rules.at(version, who); known && then.same(what) {
			return result, what, nil
		}
		switch {
		case wantsOneVersion:
			return nil, what, errRulesNotKept
		case version < since:
			opts.ResourceVersion = strconv.FormatUint(since, 10)
			opts.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		}
	}
}

// isPinned reports whether a list is requested at a fixed version.
func isPinned(opts storage.ListOptions) bool {
	version := opts.ResourceVersion
	return opts.Predicate.Continue != "" || opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		opts.ResourceVersionMatch == "" && opts.Predicate.Limit > 0 && version != "" && version != "0"
}

// seesAll reports whether the user may see everything.
func (r *Reader) seesAll(what visibleObjects) bool {
	if r.Resource.ByName {
		return what.byName.All
	}
	return what.All
}

// ranges returns the ranges with what a user may see and the selector selects, in the order of keys.
func (r *Reader) ranges(what visibleObjects, selector fields.Selector) []string {
	within, set, possible := r.Resource.Selected(selector)
	var ranges []string
	switch {
	case !possible, set != "" && !what.Has(set):
		return nil
	case set != "":
		return []string{r.Resource.SetKey(set)}
	case r.Resource.ByName && within != "" && what.byName.Has(within):
		return []string{r.Resource.NameKey(within)}
	case r.Resource.ByName && within == "":
		for _, name := range what.byName.Sorted() {
			if position.Possible(name) {
				ranges = append(ranges, r.Resource.NameKey(name))
			}
		}
	}
	if what.All {
		ranges = append(ranges, r.Resource.AllSets())
	}
	for _, set := range what.Sorted() {
		if position.Possible(set) {
			ranges = append(ranges, r.Resource.SetKey(set))
		}
	}
	// Ranges end with a slash, which sorts before some characters of a name: order as the keys do.
	slices.Sort(ranges)
	return ranges
}

// listSeen lists what a user may see, in the order and with the continuation of a list of all.
func (r *Reader) listSeen(ctx context.Context, opts storage.ListOptions, what visibleObjects, result runtime.Object) error {
	if r.seesAll(what) {
		var key string
		key, opts.Recursive = r.Resource.Range(opts)
		return r.Objects.GetList(ctx, key, opts, result)
	}
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
	// The pages are joined at the end: appending each would copy all previous ones again and again.
	var pages []runtime.Object
	defer func() { join(pages, result) }()
	all, left, more := listMeta(result), opts.Predicate.Limit, ""
	for _, key := range r.ranges(what, opts.Predicate.Field) {
		start := ""
		switch {
		case strings.HasPrefix(from, key):
			start = from
		case key < from:
			continue
		}
		for {
			if opts.Predicate.Limit > 0 && left == 0 {
				// This range may have more; a token cannot end with the slash alone.
				more = cmp.Or(start, key+"\x00")
				break
			}
			page := r.Resource.NewList()
			if err := r.listRange(ctx, opts, key, start, r.chunk(left), page); err != nil {
				return err
			}
			// All ranges are read at the version of the first.
			all.SetResourceVersion(versionOf(page))
			opts.ResourceVersion, opts.ResourceVersionMatch = versionOf(page), metav1.ResourceVersionMatchExact
			ends := listMeta(page).GetContinue() == ""
			shown, last, cut, err := r.show(page, what, left)
			if err != nil {
				return err
			}
			pages, left = append(pages, page), max(0, left-shown)
			if ends && !cut {
				break
			}
			start = last + "\x00"
		}
		if more != "" {
			break
		}
	}
	if versionOf(result) == "" {
		// Nothing to show, except the version from which a watch can continue.
		return r.listRange(ctx, opts, r.Resource.Nothing(), "", 0, result)
	}
	if more == "" {
		return nil
	}
	version, err := strconv.ParseInt(versionOf(result), 10, 64)
	if err != nil {
		return err
	}
	token, err := r.Resource.EncodeContinue(more, version)
	all.SetContinue(token)
	return err
}

// atLeast is the number of rows that are read at a time where some of them may not be shown.
const atLeast = 500

// chunk returns the number of objects to read for a page that has room for left more, 0 for all.
func (r *Reader) chunk(left int64) int64 {
	if left == 0 || !r.Resource.ByName {
		return left
	}
	return max(left, atLeast)
}

// show removes from a page what must not be shown, and what exceeds room, if room is not 0. Last is the key of the last checked object, and cut
// reports whether there are more.
func (r *Reader) show(page runtime.Object, what visibleObjects, limit int64) (shown int64, last string, cut bool, err error) {
	objects := items(page)
	var row generic.Object
	kept := 0
	for i := range objects.Len() {
		cut = limit > 0 && int64(kept) == limit
		if cut {
			break
		}
		row = objects.Index(i).Addr().Interface().(generic.Object)
		last, err = r.Resource.KeyOf(row)
		if err != nil {
			return 0, "", false, err
		}
		if !r.isFirst(row, what) {
			continue
		}
		if r.Resource.ByName {
			position.Plain(row)
		}
		if kept != i {
			objects.Index(kept).Set(objects.Index(i))
		}
		kept++
	}
	objects.SetLen(kept)
	return int64(kept), last, cut, nil
}

// isFirst reports whether a row is the first of those that show a user an object: the others are not shown.
func (r *Reader) isFirst(row generic.Object, what visibleObjects) bool {
	set, ok := position.RowSet(row)
	if !r.Resource.ByName || !ok {
		return true
	}
	if what.byName.Has(row.GetName()) {
		return false
	}
	// In the order of keys.
	for _, other := range position.RowSets(row) {
		if what.Has(other) && r.Resource.SetKey(other) < r.Resource.SetKey(set) {
			return false
		}
	}
	return true
}

// listRange lists one range, from a key in it (or its beginning).
func (r *Reader) listRange(ctx context.Context, opts storage.ListOptions, key, from string, limit int64, page runtime.Object) error {
	opts.Predicate.Limit, opts.Predicate.Continue = limit, ""
	if from != "" {
		version, err := strconv.ParseInt(opts.ResourceVersion, 10, 64)
		if err != nil {
			version = -1
		}
		opts.Predicate.Continue, err = storage.EncodeContinue(from, key, version)
		if err != nil {
			return err
		}
		opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
	}
	return r.Objects.GetList(ctx, key, opts, page)
}
