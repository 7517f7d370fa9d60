// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetmember

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember/position"
)

// watch opens a watch of the members that a user may see.
func (r *REST) watch(ctx context.Context, who user.Info, options *internalversion.ListOptions) (watch.Interface, error) {
	s := selectionOf(options)
	if err := hubgeneric.CheckVersion("resourceVersion", s.options.ResourceVersion); err != nil {
		return nil, err
	}
	version, err := versioner.ParseResourceVersion(s.options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	if isPrivileged(who) {
		// No rule changes what he sees, so there is no need to follow them.
		key, recursive := position.Range(s.options)
		s.options.Recursive = recursive
		return r.members.Watch(ctx, key, s.options)
	}
	visible, err := r.visibleFrom(ctx, who, &s, version)
	if err != nil {
		return nil, err
	}
	// The clock has to get through to the watch, whatever the client selects; and no name in the request may narrow
	// the watch to one key.
	s.options.Predicate = position.WithClock(s.predicate)
	source, err := r.members.Watch(request.WithRequestInfo(ctx, &request.RequestInfo{}), position.Root+"/", s.options)
	if err != nil {
		return nil, err
	}
	w := &visibleWatch{
		source:    source,
		who:       who,
		visible:   visible,
		epochAt:   r.access.at,
		membersAt: r.membersAt(s),
		bookmarks: s.predicate.AllowWatchBookmarks,
		result:    make(chan watch.Event),
		stop:      make(chan struct{}),
	}
	go w.run(ctx)
	return w, nil
}

// visibleFrom is what the user could see at the version that the watch starts from, if he may see all of it still.
func (r *REST) visibleFrom(ctx context.Context, who user.Info, s *selection, version uint64) (rbac.Names, error) {
	_, names, err := r.access.now(ctx, who)
	if err != nil {
		return rbac.Names{}, err
	}
	if initial := s.options.SendInitialEvents; (initial == nil && version == 0) || (initial != nil && *initial) {
		// The clock is among the initial events.
		return names, nil
	}
	// The replica that the version comes from may be ahead of this one, and "now" is the version of etcd. The rules that
	// hold there are known here once the cache has come as far; the watch itself would not wait for it.
	opts := storage.ListOptions{ResourceVersion: s.options.ResourceVersion, Recursive: true, Predicate: storage.Everything}
	reached := &view.ClusterSetMemberList{}
	if err := r.listRange(ctx, opts, position.SetKey(""), "", 0, reached); err != nil {
		return rbac.Names{}, err
	}
	if version == 0 {
		s.options.ResourceVersion = reached.ResourceVersion
		if version, err = versioner.ParseResourceVersion(reached.ResourceVersion); err != nil {
			return rbac.Names{}, err
		}
	}
	epochs := r.access.since(version)
	if len(epochs) == 0 {
		return rbac.Names{}, errRulesNotKept
	}
	now, known := epochs[len(epochs)-1].names(who)
	if !known {
		return rbac.Names{}, errRulesNotKept
	}
	// What happened since is told by the rules of its time. None of it may be about a set that was taken away meanwhile:
	// whoever comes back after that lists what is left.
	for _, epoch := range epochs {
		if then, known := epoch.names(who); !known || !now.Includes(then) {
			return rbac.Names{}, errRulesNotKept
		}
	}
	then, _ := epochs[0].names(who)
	return then, nil
}
