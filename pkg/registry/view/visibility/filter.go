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

// filter shows of a watch of all objects those that one user may see, and turns a change of visibility into events:
// objects of a set that the user gains are added, those of a set that the user loses are deleted.
type filter struct {
	reader *Reader
	who    user.Info
	// source has what the predicate selects, and the clock.
	source    watch.Interface
	predicate storage.SelectionPredicate
	// visible are the sets that the user may see, at the point of the stream that has been reached.
	visible rbac.Names
	// state is sent first, if there is any, and a bookmark after it if marksState.
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

// show passes an event on if the user may see it. Of an object it reads the metadata only: the cacher wraps objects that
// go to several watches, so that each is encoded once, and the wrapping stays. What has no name is not shown.
func (f *filter) show(ctx context.Context, event watch.Event) bool {
	switch event.Type {
	case watch.Bookmark, watch.Error:
		return f.send(ctx, event)
	}
	object, ok := event.Object.(metav1.Object)
	if !ok {
		return f.fail(ctx, apierrors.NewInternalError(fmt.Errorf("unexpected %T among the %s", event.Object, f.reader.Resource)))
	}
	if object.GetName() == position.ClockName {
		return f.tick(ctx, object.GetResourceVersion())
	}
	if _, set, ok := f.reader.Resource.Split(object.GetName()); ok && f.visible.Has(set) {
		return f.send(ctx, event)
	}
	return true
}

// tick lets a change of the rules take effect.
func (f *filter) tick(ctx context.Context, resourceVersion string) bool {
	version, err := versioner.ParseResourceVersion(resourceVersion)
	if err != nil {
		return f.fail(ctx, apierrors.NewInternalError(err))
	}
	after, known := f.reader.Rules.history.at(version, f.who)
	if !known {
		return f.fail(ctx, apierrors.NewResourceExpired(errUnknownRules.Error()))
	}
	before := f.visible
	if after.Equal(before) {
		return true
	}
	f.visible = after
	gained, lost, listed := after.Diff(before)
	sets := append(append([]string{}, gained...), lost...)
	if !listed {
		sets = nil
	}
	objects, err := f.selected(ctx, version, sets)
	if err != nil {
		return f.fail(ctx, errRulesNotKept)
	}
	for _, object := range objects {
		_, set, _ := f.reader.Resource.Split(object.GetName())
		was, is := before.Has(set), after.Has(set)
		if was == is {
			continue
		}
		// The version before the change: a client that breaks off in the middle comes back for all of it.
		position.SetVersion(object, version-1)
		kind := watch.Added
		if was {
			kind = watch.Deleted
		}
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

// selected lists what the watch selects in the given sets (all when nil), as it was at a version.
func (f *filter) selected(ctx context.Context, version uint64, sets []string) ([]generic.Object, error) {
	keys := []string{f.reader.Resource.All()}
	if sets != nil {
		keys = keys[:0]
		for _, set := range sets {
			keys = append(keys, f.reader.Resource.SetKey(set))
		}
	}
	var objects []generic.Object
	for _, key := range keys {
		page := f.reader.Resource.NewList()
		err := f.reader.Objects.GetList(ctx, key, storage.ListOptions{
			Recursive:            true,
			ResourceVersion:      strconv.FormatUint(version, 10),
			ResourceVersionMatch: metav1.ResourceVersionMatchExact,
			Predicate:            f.predicate,
		}, page)
		if err != nil {
			return nil, err
		}
		objects = slices.AppendSeq(objects, each(page))
	}
	return objects, nil
}

func (f *filter) fail(ctx context.Context, err *apierrors.StatusError) bool {
	status := err.Status()
	f.send(ctx, watch.Event{Type: watch.Error, Object: &status})
	return false
}

// send waits for the client. The context ends with the request, also where its handler leaves without stopping the watch.
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
