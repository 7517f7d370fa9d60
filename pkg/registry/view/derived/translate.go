// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package derived

import (
	"context"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/apis/visibility"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// translation translates the changes of clusters and sets into those of a derived resource.
type translation struct {
	derivation *derivation
	generation *generation
	result     chan watch.Event
	stop       chan struct{}
	stopOnce   sync.Once
}

var _ watch.Interface = &translation{}

func (t *translation) Stop()                          { t.stopOnce.Do(func() { close(t.stop) }) }
func (t *translation) ResultChan() <-chan watch.Event { return t.result }

func (t *translation) run(ctx context.Context) {
	defer close(t.result)
	for {
		select {
		case <-t.stop:
			t.pause()
			return
		case <-ctx.Done():
			t.pause()
			return
		case event, ok := <-t.generation.events.ResultChan():
			if !ok {
				t.fail(apierrors.NewResourceExpired("the watch of clusters and sets ended"))
				return
			}
			if !t.translate(ctx, event) {
				return
			}
		}
	}
}

// pause releases the generation so that another watch can continue after what was delivered.
func (t *translation) pause() {
	t.derivation.mu.Lock()
	defer t.derivation.mu.Unlock()
	t.generation.at = t.generation.last
}

// fail makes the cacher compute everything again.
func (t *translation) fail(err *apierrors.StatusError) {
	status := err.Status()
	t.send(watch.Event{Type: watch.Error, Object: &status})
}

// translate delivers the changes of one source event, and a bookmark that completes its revision.
func (t *translation) translate(ctx context.Context, event watch.Event) bool {
	if event.Type == watch.Error {
		t.send(event)
		return false
	}
	revision, err := t.derivation.Versioner().ObjectResourceVersion(event.Object)
	if err != nil {
		t.fail(apierrors.NewInternalError(err))
		return false
	}
	if event.Type != watch.Bookmark {
		began := time.Now()
		changes := t.apply(event)
		if err := position.CheckBatch(len(changes)); err != nil {
			klog.ErrorS(err, "Recomputing the objects", "resource", t.derivation.kind.GroupResource)
			t.fail(apierrors.NewResourceExpired(err.Error()))
			return false
		}
		if event.Type != watch.Deleted {
			if _, ok := event.Object.(*visibility.Revision); ok && len(changes) > 0 {
				t.derivation.revisions.Observe(ctx, position.Version(revision, 0), t.generation.digest)
			}
		}
		for i, change := range changes {
			position.SetVersion(change.Object, position.Version(revision, i))
			if !t.send(watch.Event{Type: change.Type, Object: change.Object}) {
				return false
			}
		}
		if len(changes) > 0 {
			lagSeconds.WithLabelValues(t.derivation.kind.GroupResource.String()).Observe(time.Since(began).Seconds())
		}
	}
	end := t.derivation.kind.New()
	position.SetVersion(end, position.Version(revision, position.End))
	if !t.send(watch.Event{Type: watch.Bookmark, Object: end}) {
		return false
	}
	t.generation.last = strconv.FormatUint(position.Version(revision, position.End), 10)
	return true
}

func (t *translation) apply(event watch.Event) []Change {
	gone := event.Type == watch.Deleted
	revised, ok := event.Object.(*visibility.Revision)
	if !ok {
		if gone {
			return t.generation.index.Delete(event.Object)
		}
		return t.generation.index.Set(event.Object)
	}
	before := t.generation.digest
	t.generation.digest = t.derivation.kind.Digest(revised)
	if !gone && t.generation.clock != nil && t.generation.digest == before {
		return nil // It is about another resource.
	}
	kind := watch.Modified
	switch {
	case gone:
		kind = watch.Deleted
	case t.generation.clock == nil:
		kind = watch.Added
	}
	clock := t.derivation.kind.NewClock(0)
	t.generation.clock = clock
	if gone {
		t.generation.clock = nil
	}
	return []Change{{Type: kind, Object: clock}}
}

// send delivers one event. It returns false when the watch has ended; a partially sent change is not resumed.
func (t *translation) send(event watch.Event) bool {
	select {
	case t.result <- event:
		return true
	case <-t.stop:
		return false
	}
}
