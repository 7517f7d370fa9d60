// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetmember

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember/position"
)

var errNoUser = errors.New("the request has no user")

// needsSetError names the rule that shows a user the members of a set.
type needsSetError struct{ user, set string }

func (e *needsSetError) Error() string {
	return fmt.Sprintf("user %q needs the RBAC rule {apiGroups: [%q], resources: [%q], resourceNames: [%q], verbs: [%q]} to see the members of the set",
		e.user, "cluster.open-cluster-management.io", "managedclustersets", e.set, "get")
}

// list returns the members that a user may see. A user who may see few sets costs those sets, never the fleet.
func (r *REST) list(ctx context.Context, who user.Info, options *internalversion.ListOptions) (*view.ClusterSetMemberList, error) {
	s := selectionOf(options)
	pinned := s.pinned()
	for {
		epoch, names, err := r.access.now(ctx, who)
		if err != nil {
			return nil, err
		}
		result := &view.ClusterSetMemberList{}
		if names.All {
			key, recursive := position.Range(s.options)
			opts := s.options
			opts.Recursive = recursive
			err = r.members.GetList(ctx, key, opts, result)
		} else {
			err = r.listSets(ctx, s, names, result)
		}
		if err != nil {
			return nil, err
		}
		if isPrivileged(who) {
			return result, nil
		}
		// The list has to be shown by the rules of its own version, or a watch from there would miss a change.
		version, err := versioner.ParseResourceVersion(result.ResourceVersion)
		if err != nil {
			return nil, err
		}
		if then, ok := r.access.at(version); ok {
			if held, known := then.names(who); known && held.Equal(names) {
				return result, nil
			}
		}
		switch {
		case pinned:
			return nil, errRulesNotKept
		case version < epoch.version:
			s.options.ResourceVersion = strconv.FormatUint(epoch.version, 10)
			s.options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		}
	}
}

func isPrivileged(who user.Info) bool {
	return slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup)
}

// listSets lists the members of the named sets, in the order and with the continuation of a list of all.
func (r *REST) listSets(ctx context.Context, s selection, names rbac.Names, result *view.ClusterSetMemberList) error {
	sets := slices.DeleteFunc(names.Sorted(), func(set string) bool { return !position.Possible(set) })
	if set, ok := s.predicate.Field.RequiresExactMatch("spec.clusterSet"); ok && set != "" {
		sets = nil
		if names.Has(set) && position.Possible(set) {
			sets = []string{set}
		}
	}
	// Keys end the set's name with a slash, which sorts before some characters of a name: order as the keys do.
	slices.SortFunc(sets, func(a, b string) int { return strings.Compare(a+"/", b+"/") })

	opts := s.options
	from := ""
	if s.predicate.Continue != "" {
		key, version, err := position.DecodeContinue(s.predicate.Continue)
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
		return r.listRange(ctx, opts, position.SetKey(""), "", 0, result)
	}
	for i, set := range sets {
		start := ""
		if from != "" {
			switch {
			case strings.HasPrefix(from, position.SetKey(set)):
				start = from
			case position.SetKey(set) < from:
				continue
			}
		}
		limit := int64(0)
		if s.predicate.Limit > 0 {
			limit = s.predicate.Limit - int64(len(result.Items))
		}
		page := &view.ClusterSetMemberList{}
		if err := r.listRange(ctx, opts, position.SetKey(set), start, limit, page); err != nil {
			return err
		}
		result.Items = append(result.Items, page.Items...)
		result.ResourceVersion = page.ResourceVersion
		// All ranges are read at the version of the first.
		opts.ResourceVersion, opts.ResourceVersionMatch = page.ResourceVersion, metav1.ResourceVersionMatchExact
		version, err := strconv.ParseInt(page.ResourceVersion, 10, 64)
		if err != nil {
			return err
		}
		more := ""
		switch {
		case page.Continue != "":
			key, _, err := storage.DecodeContinue(page.Continue, position.SetKey(set))
			if err != nil {
				return err
			}
			more = key
		case s.predicate.Limit > 0 && int64(len(result.Items)) >= s.predicate.Limit && i+1 < len(sets):
			// Before the set's first member; a token cannot end with the slash alone.
			more = position.SetKey(sets[i+1]) + "\x00"
		}
		if more != "" {
			result.Continue, err = position.EncodeContinue(more, version)
			return err
		}
	}
	if result.ResourceVersion == "" {
		return r.listRange(ctx, opts, position.SetKey(""), "", 0, result)
	}
	return nil
}

// listRange lists one range, from a key in it (or its beginning).
func (r *REST) listRange(ctx context.Context, opts storage.ListOptions, key, from string, limit int64, page *view.ClusterSetMemberList) error {
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
	return r.members.GetList(ctx, key, opts, page)
}

// membersAt lists what a watch's selectors match in the given sets (all when nil), as it was at a version.
func (r *REST) membersAt(s selection) func(context.Context, uint64, []string) ([]view.ClusterSetMember, error) {
	return func(ctx context.Context, version uint64, sets []string) ([]view.ClusterSetMember, error) {
		keys := []string{position.Members}
		if sets != nil {
			keys = keys[:0]
			for _, set := range sets {
				keys = append(keys, position.SetKey(set))
			}
		}
		var members []view.ClusterSetMember
		for _, key := range keys {
			page := &view.ClusterSetMemberList{}
			predicate := s.predicate
			predicate.Limit, predicate.Continue = 0, ""
			err := r.members.GetList(ctx, key, storage.ListOptions{
				Recursive:            true,
				ResourceVersion:      strconv.FormatUint(version, 10),
				ResourceVersionMatch: metav1.ResourceVersionMatchExact,
				Predicate:            predicate,
			}, page)
			if err != nil {
				return nil, err
			}
			members = append(members, page.Items...)
		}
		return members, nil
	}
}
