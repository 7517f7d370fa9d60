// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drift watches the objects that works have brought to a cluster, each by its name: an agent hears of what others do to them,
// and of nothing else in the cluster. It gets their metadata only.
package drift

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
)

// longestPause is between two attempts to watch.
const longestPause = 2 * time.Minute

// Watcher watches objects for works.
type Watcher struct {
	Client metadata.Interface
	// Most is how many objects are watched. The others are to be looked at now and then.
	Most int
	// Changed is called with a work when one of its objects may have changed. It must not block.
	Changed func(work string)
	// Random is in [0, 1), for delays that spread.
	Random func() float64

	mu      sync.Mutex
	running sync.WaitGroup
	watches map[apply.Target]*watched
}

// watched is one object.
type watched struct {
	works sets.Set[string]
	stop  context.CancelFunc
	// version is the newest resource version of the object that was heard of, or told by Seen.
	version string
	// open says that all is heard that happens after version: a watch that breaks off goes on at position.
	open     bool
	position string
}

// Watch has an object watched for a work from a resource version on, or from now on if that is empty. It is false if that is one
// too many.
func (w *Watcher) Watch(ctx context.Context, work string, t apply.Target, version string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.watches[t]; one != nil {
		one.works.Insert(work)
		return true
	}
	if len(w.watches) >= w.Most || ctx.Err() != nil {
		return false
	}
	if w.watches == nil {
		w.watches = map[apply.Target]*watched{}
	}
	ctx, stop := context.WithCancel(ctx)
	one := &watched{works: sets.New(work), stop: stop, version: version, open: version != "", position: version}
	w.watches[t] = one
	w.running.Go(func() { w.keep(ctx, t, one) })
	return true
}

// Fresh says whether an object is known to be as it was at a resource version.
func (w *Watcher) Fresh(t apply.Target, version string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.watches[t]
	return one != nil && one.open && one.version == version
}

// Observed returns the newest resource version of an object that the watch has delivered; empty if it has delivered none.
func (w *Watcher) Observed(t apply.Target) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.watches[t]; one != nil {
		return one.version
	}
	return ""
}

// Seen says that an object was read, or written by us, at a resource version: what is heard of that is no news.
func (w *Watcher) Seen(t apply.Target, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.watches[t]; one != nil && one.open && version != "" && newer(version, one.version) {
		one.version = version
	}
}

// Keep ends the watches for a work of all other objects.
func (w *Watcher) Keep(work string, targets sets.Set[apply.Target]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for t, one := range w.watches {
		if !one.works.Has(work) || targets.Has(t) {
			continue
		}
		if one.works.Delete(work); len(one.works) == 0 {
			one.stop()
			delete(w.watches, t)
		}
	}
}

// Wait returns when all watches have ended, after their context.
func (w *Watcher) Wait() { w.running.Wait() }

// keep watches an object until the context ends.
func (w *Watcher) keep(ctx context.Context, t apply.Target, one *watched) {
	defer one.stop()
	retry := repeat.Backoff{Shortest: time.Second, Longest: longestPause, Random: w.Random}
	for ctx.Err() == nil {
		w.mu.Lock()
		from := one.position
		w.mu.Unlock()
		stream, err := w.Client.Resource(t.GroupVersionResource).Namespace(t.Namespace).Watch(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("metadata.name", t.Name).String(), ResourceVersion: from, AllowWatchBookmarks: true})
		if err == nil {
			began := time.Now()
			err = w.listen(ctx, one, stream, from == "")
			stream.Stop()
			if time.Since(began) > longestPause {
				retry.Reset()
			}
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && !apierrors.IsTooManyRequests(err) && !apierrors.IsInternalError(err) &&
				!apierrors.IsServiceUnavailable(err) && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) {
				w.lost(one)
			}
			klog.FromContext(ctx).V(2).Info("The watch of an object has ended", "object", t.String(), "reason", err.Error())
		}
		if !repeat.Sleep(ctx, retry.Next()) {
			return
		}
	}
}

// listen hears what there is to hear. A watch that was not begun at a version says what is there first, or nothing if nothing is.
func (w *Watcher) listen(ctx context.Context, one *watched, stream watch.Interface, anew bool) error {
	if anew {
		w.hear(one, "", true)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-stream.ResultChan():
			if !ok {
				return nil // it goes on where it has ended
			}
			if event.Type == watch.Error {
				return apierrors.FromObject(event.Object)
			}
			object, ok := event.Object.(*metav1.PartialObjectMetadata)
			if !ok {
				continue
			}
			w.hear(one, object.ResourceVersion, event.Type != watch.Bookmark)
		}
	}
}

// hear notes a resource version, and tells the works of it if it is news.
func (w *Watcher) hear(one *watched, version string, news bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if version != "" {
		one.position = version
	}
	if !news || one.open && version == one.version {
		return
	}
	if one.open = true; newer(version, one.version) {
		one.version = version
	}
	for work := range one.works {
		w.Changed(work)
	}
}

// lost says that there is no way to hear all that has happened: works look at the object themselves.
func (w *Watcher) lost(one *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := one.open
	one.open, one.version, one.position = false, "", ""
	if was {
		for work := range one.works {
			w.Changed(work)
		}
	}
}

// newer compares resource versions, which servers of Kubernetes give as numbers.
func newer(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }
