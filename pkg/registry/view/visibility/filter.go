// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// filter passes from a watch of all objects those that one user may see, and converts changes of the visibility to events: objects that the user
// gains are added, those that the user loses are deleted.
type filter struct {
	reader *Reader
	who    user.Info
	// source has the objects that the predicate selects, and the clock.
	source    watch.Interface
	predicate storage.SelectionPredicate
	// visible has what the user may see, at the current point of the stream.
	visible visibleObjects
	// moving is the object whose rows are being received, of a resource that has rows.
	moving rows
	// state, if not nil, is sent first, followed by a bookmark if marksState.
	state      runtime.Object
	marksState bool

	result   chan watch.Event
	stop     chan struct{}
	stopOnce sync.Once
}

var _ watch.Interface = &filter{}

func (f *filter) ResultChan() <-chan watch.Event { return f.result }

func (f *filter) Stop() {
	f.stopOnce.Do(func() {
		close(f.stop)
		f.source.Stop()
	})
}

func (f *filter) run(ctx context.Context) {
	defer close(f.result)
	defer f.source.Stop()
	if !f.sendState(ctx) {
		return
	}
	for event := range f.source.ResultChan() {
		if !f.show(ctx, event) {
			return
		}
	}
}

func (f *filter) sendState(ctx context.Context) bool {
	if f.state == nil {
		return true
	}
	for object := range each(f.state) {
		if !f.send(ctx, watch.Event{Type: watch.Added, Object: object}) {
			return false
		}
	}
	end := f.reader.Resource.New()
	end.SetResourceVersion(versionOf(f.state))
	end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	f.state = nil
	return !f.marksState || f.send(ctx, watch.Event{Type: watch.Bookmark, Object: end})
}

// show passes an event on if the user may see its object. It reads only the metadata of an object: the cacher wraps objects that it sends to several
// watches, so that each is encoded once, and the wrapper is retained. An object without a name is not passed on.
func (f *filter) show(ctx context.Context, event watch.Event) bool {
	switch event.Type {
	case watch.Bookmark:
		if f.moving.name != "" {
			return true // It would mark a partial change as complete. More bookmarks will follow.
		}
		return f.send(ctx, event)
	case watch.Error:
		return f.send(ctx, event)
	}
	object, ok := event.Object.(metav1.Object)
	if !ok {
		return f.fail(ctx, apierrors.NewInternalError(fmt.Errorf("unexpected %T among the %s", event.Object, f.reader.Resource)))
	}
	if object.GetName() != f.moving.name && !f.flush(ctx) {
		return false
	}
	switch {
	case object.GetName() == position.ClockName:
		return f.tick(ctx, object.GetResourceVersion())
	case object.GetName() == position.EndName:
		return true
	case f.reader.Resource.ByName:
		f.moving.add(event, object, f.visible)
		return true
	}
	if _, set, ok := f.reader.Resource.Split(object.GetName()); ok && f.visible.Has(set) {
		return f.send(ctx, event)
	}
	return true
}

// tick puts a change of the rules into effect.
func (f *filter) tick(ctx context.Context, resourceVersion string) bool {
	version, err := versioner.ParseResourceVersion(resourceVersion)
	if err != nil {
		return f.fail(ctx, apierrors.NewInternalError(err))
	}
	after, known := f.reader.rules().at(version, f.who)
	if !known {
		return f.fail(ctx, apierrors.NewResourceExpired(errUnknownRules.Error()))
	}
	before := f.visible
	if after.same(before) {
		return true
	}
	f.visible = after
	lost, gained, err := f.difference(ctx, version, before, after)
	if err != nil {
		return f.fail(ctx, errRulesNotKept)
	}
	for i, object := range slices.Concat(lost, gained) {
		kind := watch.Added
		if i < len(lost) {
			kind = watch.Deleted
		}
		// The version before the change: a client that disconnects in the middle gets all of it again.
		position.SetVersion(object, version-1)
		if !f.send(ctx, watch.Event{Type: kind, Object: object}) {
			return false
		}
	}
	if !f.predicate.AllowWatchBookmarks {
		return true
	}
	done := f.reader.Resource.New()
	position.SetVersion(done, version)
	return f.send(ctx, watch.Event{Type: watch.Bookmark, Object: done})
}

// difference returns the objects that the watch selects, at a version, that could be seen before and cannot after, or the reverse. It reads the sets
// that differ or, where an object may be in several, what the user could see and can see.
func (f *filter) difference(ctx context.Context, version uint64, before, after visibleObjects) (lost, gained []generic.Object, err error) {
	if f.reader.seesAll(before) && f.reader.seesAll(after) {
		return nil, nil, nil
	}
	if gainedSets, lostSets, listed := after.Diff(before.Names); listed && !f.reader.Resource.ByName {
		before, after = visibleObjects{Names: rbac.NamesOf(lostSets...)}, visibleObjects{Names: rbac.NamesOf(gainedSets...)}
	}
	could, err := f.selected(ctx, version, before)
	if err != nil {
		return nil, nil, err
	}
	can, err := f.selected(ctx, version, after)
	if err != nil {
		return nil, nil, err
	}
	return without(could, can), without(can, could), nil
}

// without returns the objects that are not among the others.
func without(objects, others []generic.Object) []generic.Object {
	names := make(map[string]struct{}, len(others))
	for _, other := range others {
		names[other.GetName()] = struct{}{}
	}
	return slices.DeleteFunc(slices.Clone(objects), func(object generic.Object) bool {
		_, ok := names[object.GetName()]
		return ok
	})
}

// selected lists what the watch selects of the visible objects, at a version.
func (f *filter) selected(ctx context.Context, version uint64, what visibleObjects) ([]generic.Object, error) {
	list := f.reader.Resource.NewList()
	err := f.reader.listSeen(ctx, storage.ListOptions{
		Recursive:            true,
		ResourceVersion:      strconv.FormatUint(version, 10),
		ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		Predicate:            f.predicate,
	}, what, list)
	return slices.Collect(each(list)), err
}

func (f *filter) fail(ctx context.Context, err *apierrors.StatusError) bool {
	status := err.Status()
	f.send(ctx, watch.Event{Type: watch.Error, Object: &status})
	return false
}

// send waits for the client. The context ends with the request, also if its handler returns without stopping the watch.
func (f *filter) send(ctx context.Context, event watch.Event) bool {
	select {
	case f.result <- event:
		return true
	case <-f.stop:
		return false
	case <-ctx.Done():
		return false
	}
}
