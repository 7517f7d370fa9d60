// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// Watch opens a watch of the objects that a user may see.
func (r *Reader) Watch(ctx context.Context, who user.Info, opts storage.ListOptions) (watch.Interface, error) {
	opts.Predicate.Limit, opts.Predicate.Continue = 0, "" // they are for lists
	if isPrivileged(who) {
		// No rule affects what the user sees, so the rules need not be followed.
		var key string
		key, opts.Recursive = r.Resource.Range(opts)
		return r.Objects.Watch(ctx, key, opts)
	}
	f := &filter{
		reader: r, who: who, predicate: opts.Predicate,
		result: make(chan watch.Event), stop: make(chan struct{}),
	}
	if err := f.begin(ctx, &opts); err != nil {
		return nil, err
	}
	// The clock must reach the filter, and no name in the request may narrow the watch to one key.
	opts.Predicate = position.WithClock(opts.Predicate)
	source, err := r.Objects.Watch(request.WithRequestInfo(ctx, &request.RequestInfo{}), r.Resource.Root()+"/", opts)
	if err != nil {
		return nil, err
	}
	f.source = source
	go f.run(ctx)
	return f, nil
}

// begin determines what is visible where the watch starts, and changes the options to start there.
func (f *filter) begin(ctx context.Context, opts *storage.ListOptions) error {
	version, err := versioner.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return err
	}
	rules := f.reader.rules()
	f.visible, _, err = f.reader.now(ctx, f.who)
	if err != nil {
		return err
	}
	wantsState := version == 0
	if opts.SendInitialEvents != nil {
		wantsState = *opts.SendInitialEvents
	}
	switch {
	case wantsState && f.visible.All && !f.reader.Resource.ByName:
		// The cache starts with all objects, including the clock. It would start with all rows, too.
		return nil
	case wantsState:
		return f.beginWithState(ctx, version, opts)
	}
	// The replica of the version may be ahead of this one, and "now" is the version of etcd. The rules in effect there are known here once the cache
	// has caught up; the watch itself would not wait for that.
	reached := f.reader.Resource.NewList()
	nothing := storage.ListOptions{ResourceVersion: opts.ResourceVersion, Recursive: true, Predicate: storage.Everything}
	if err := f.reader.listRange(ctx, nothing, f.reader.Resource.Nothing(), "", 0, reached); err != nil {
		return err
	}
	if version == 0 {
		opts.ResourceVersion = versionOf(reached)
		version, err = versioner.ParseResourceVersion(opts.ResourceVersion)
		if err != nil {
			return err
		}
	}
	f.visible, err = rules.resume(version, f.who)
	return err
}

// beginWithState reads what is visible like a list, so that the watch reads only the sets that the user may see: the cache itself would start with
// the whole fleet, for the filter to drop.
func (f *filter) beginWithState(ctx context.Context, version uint64, opts *storage.ListOptions) error {
	list := *opts
	list.ResourceVersionMatch = ""
	switch {
	case version > 0:
		list.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	case opts.SendInitialEvents == nil:
		list.ResourceVersion = "0" // Clients that do not request initial events explicitly get those of the cache.
	}
	state, visible, err := f.reader.list(ctx, f.who, list)
	if err != nil {
		return err
	}
	f.visible, f.state = visible, state
	f.marksState = opts.SendInitialEvents != nil && f.predicate.AllowWatchBookmarks
	opts.ResourceVersion, opts.ResourceVersionMatch, opts.SendInitialEvents = versionOf(state), "", nil
	return nil
}
