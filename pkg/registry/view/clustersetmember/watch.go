// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetmember

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/rbac"
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
		member, ok := event.Object.(*view.ClusterSetMember)
		switch {
		case !ok || event.Type == watch.Bookmark || event.Type == watch.Error:
			ok = w.send(event)
		case isClock(member):
			ok = w.tick(ctx, member)
		case w.visible.Has(member.Spec.ClusterSet):
			ok = w.send(event)
		}
		if !ok {
			return
		}
	}
}

// tick lets a change of the rules take effect.
func (w *visibleWatch) tick(ctx context.Context, clock *view.ClusterSetMember) bool {
	version, err := versioner.ObjectResourceVersion(clock)
	if err != nil {
		return w.fail(apierrors.NewInternalError(err))
	}
	now, known := w.epochAt(version)
	var after rbac.Names
	if known {
		after, known = now.names(w.who)
	}
	if !known {
		return w.fail(apierrors.NewResourceExpired(errUnknownRules.Error()))
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
		return w.fail(apierrors.NewResourceExpired("what you may see has changed: list the members anew"))
	}
	for i := range members {
		m := &members[i]
		was, is := before.Has(m.Spec.ClusterSet), after.Has(m.Spec.ClusterSet)
		if was == is {
			continue
		}
		// The version before the change: a client that breaks off in the middle comes back for all of it.
		setVersion(m, version-1)
		kind := watch.Added
		if was {
			kind = watch.Deleted
		}
		if !w.send(watch.Event{Type: kind, Object: m}) {
			return false
		}
	}
	if !w.bookmarks {
		return true
	}
	done := &view.ClusterSetMember{}
	setVersion(done, version)
	return w.send(watch.Event{Type: watch.Bookmark, Object: done})
}

func (w *visibleWatch) fail(err *apierrors.StatusError) bool {
	status := err.Status()
	w.send(watch.Event{Type: watch.Error, Object: &status})
	return false
}

func (w *visibleWatch) send(event watch.Event) bool {
	select {
	case w.result <- event:
		return true
	case <-w.stop:
		return false
	}
}
