// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetmember

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember/position"
)

// visibleWatch shows of a watch of all members those that one user may see, and turns a change of what he may see
// into events: members of a set that he gains are added, those of a set that he loses are deleted.
type visibleWatch struct {
	source  watch.Interface
	who     user.Info
	visible rbac.Names
	epochAt func(version uint64) (epoch, bool)
	// membersAt lists the members of the given sets (all sets when nil) that match the watch's selectors, as they
	// were at a version.
	membersAt func(ctx context.Context, version uint64, sets []string) ([]view.ClusterSetMember, error)
	bookmarks bool

	result   chan watch.Event
	stop     chan struct{}
	stopOnce sync.Once
}

var _ watch.Interface = &visibleWatch{}

func (w *visibleWatch) ResultChan() <-chan watch.Event { return w.result }

func (w *visibleWatch) Stop() {
	w.stopOnce.Do(func() {
		close(w.stop)
		w.source.Stop()
	})
}

func (w *visibleWatch) run(ctx context.Context) {
	defer close(w.result)
	defer w.source.Stop()
	for event := range w.source.ResultChan() {
		if !w.show(ctx, event) {
			return
		}
	}
}

// show passes an event on if the user may see it. Of an object it reads the metadata only: the cacher wraps objects that
// go to several watches, so that each is encoded once, and the wrapping stays. What has no name is not shown.
func (w *visibleWatch) show(ctx context.Context, event watch.Event) bool {
	switch event.Type {
	case watch.Bookmark, watch.Error:
		return w.send(ctx, event)
	}
	member, ok := event.Object.(metav1.Object)
	if !ok {
		return w.fail(ctx, apierrors.NewInternalError(fmt.Errorf("unexpected %T among the members", event.Object)))
	}
	if member.GetName() == position.ClockName {
		return w.tick(ctx, member.GetResourceVersion())
	}
	if _, set, ok := position.SplitName(member.GetName()); ok && w.visible.Has(set) {
		return w.send(ctx, event)
	}
	return true
}

// tick lets a change of the rules take effect.
func (w *visibleWatch) tick(ctx context.Context, resourceVersion string) bool {
	version, err := versioner.ParseResourceVersion(resourceVersion)
	if err != nil {
		return w.fail(ctx, apierrors.NewInternalError(err))
	}
	now, known := w.epochAt(version)
	var after rbac.Names
	if known {
		after, known = now.names(w.who)
	}
	if !known {
		return w.fail(ctx, apierrors.NewResourceExpired(errUnknownRules.Error()))
	}
	before := w.visible
	if after.Equal(before) {
		return true
	}
	w.visible = after
	gained, lost, listed := after.Diff(before)
	sets := append(append([]string{}, gained...), lost...)
	if !listed {
		sets = nil
	}
	members, err := w.membersAt(ctx, version, sets)
	if err != nil {
		return w.fail(ctx, apierrors.NewResourceExpired("what you may see has changed: list the members anew"))
	}
	for i := range members {
		m := &members[i]
		was, is := before.Has(m.Spec.ClusterSet), after.Has(m.Spec.ClusterSet)
		if was == is {
			continue
		}
		// The version before the change: a client that breaks off in the middle comes back for all of it.
		position.SetVersion(m, version-1)
		kind := watch.Added
		if was {
			kind = watch.Deleted
		}
		if !w.send(ctx, watch.Event{Type: kind, Object: m}) {
			return false
		}
	}
	if !w.bookmarks {
		return true
	}
	done := &view.ClusterSetMember{}
	position.SetVersion(done, version)
	return w.send(ctx, watch.Event{Type: watch.Bookmark, Object: done})
}

func (w *visibleWatch) fail(ctx context.Context, err *apierrors.StatusError) bool {
	status := err.Status()
	w.send(ctx, watch.Event{Type: watch.Error, Object: &status})
	return false
}

// send waits for the client. The context ends with the request, also where its handler leaves without stopping the watch.
func (w *visibleWatch) send(ctx context.Context, event watch.Event) bool {
	select {
	case w.result <- event:
		return true
	case <-w.stop:
		return false
	case <-ctx.Done():
		return false
	}
}
