// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember/position"
)

// Watch opens a watch of the members that a user may see.
func (r *Reader) Watch(ctx context.Context, who user.Info, opts storage.ListOptions) (watch.Interface, error) {
	opts.Predicate.Limit, opts.Predicate.Continue = 0, "" // they are for lists
	if isPrivileged(who) {
		// No rule changes what the user sees, so there is no need to follow them.
		var key string
		key, opts.Recursive = position.Range(opts)
		return r.Members.Watch(ctx, key, opts)
	}
	f := &filter{
		reader: r, who: who, predicate: opts.Predicate,
		result: make(chan watch.Event), stop: make(chan struct{}),
	}
	var err error
	if f.visible, err = r.visibleFrom(ctx, who, &opts); err != nil {
		return nil, err
	}
	// The clock has to get through to the filter, and no name in the request may narrow the watch to one key.
	opts.Predicate = position.WithClock(opts.Predicate)
	f.source, err = r.Members.Watch(request.WithRequestInfo(ctx, &request.RequestInfo{}), position.Root+"/", opts)
	if err != nil {
		return nil, err
	}
	go f.run(ctx)
	return f, nil
}

// visibleFrom is what the user could see at the version that the watch starts from, if all of it is visible still.
func (r *Reader) visibleFrom(ctx context.Context, who user.Info, opts *storage.ListOptions) (rbac.Names, error) {
	version, err := versioner.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return rbac.Names{}, err
	}
	names, _, err := r.Rules.history.now(ctx, who)
	if err != nil {
		return rbac.Names{}, err
	}
	if initial := opts.SendInitialEvents; (initial == nil && version == 0) || (initial != nil && *initial) {
		// The clock is among the initial events.
		return names, nil
	}
	// The replica that the version comes from may be ahead of this one, and "now" is the version of etcd. The rules that
	// hold there are known here once the cache has come as far; the watch itself would not wait for it.
	reached := &view.ClusterSetMemberList{}
	nothing := storage.ListOptions{ResourceVersion: opts.ResourceVersion, Recursive: true, Predicate: storage.Everything}
	if err := r.listRange(ctx, nothing, position.SetKey(""), "", 0, reached); err != nil {
		return rbac.Names{}, err
	}
	if version == 0 {
		opts.ResourceVersion = reached.ResourceVersion
		if version, err = versioner.ParseResourceVersion(reached.ResourceVersion); err != nil {
			return rbac.Names{}, err
		}
	}
	return r.Rules.history.resume(version, who)
}
