// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drift watches the metadata of the objects that works have applied to a cluster, each by its name. So an agent observes what other clients
// do to these objects, and no other objects of the cluster.
package drift

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/remote/watch"
)

// Watcher watches objects for works.
type Watcher struct {
	Client metadata.Interface
	// Most is the maximum number of objects that are watched. The others must be read from time to time.
	Most int
	// Changed is called with a work when one of its objects may have changed. It must not block.
	Changed func(work string)

	mu      sync.Mutex
	running sync.WaitGroup
	watches map[apply.Target]*objectWatch
}

// objectWatch is the watch of one object.
type objectWatch struct {
	works sets.Set[string]
	stop  context.CancelFunc
	// version is the newest resource version of the object that was observed, or passed to Seen.
	version string
	// open is whether all events after version are observed: a watch that is interrupted resumes.
	open bool
}

// Watch starts to watch an object for a work, from a resource version, or from now on if that is empty. It returns false if the maximum number of
// watches is reached.
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
		w.watches = map[apply.Target]*objectWatch{}
	}
	ctx, stop := context.WithCancel(ctx)
	one := &objectWatch{works: sets.New(work), stop: stop, version: version, open: version != ""}
	w.watches[t] = one
	w.running.Go(func() { w.watchObject(ctx, t, one, version) })
	return true
}

// Fresh reports whether an object is known to be unchanged since a resource version.
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

// Seen records that the agent read or wrote an object at a resource version: an event with that version is not a change.
func (w *Watcher) Seen(t apply.Target, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.watches[t]; one != nil && one.open && version != "" && newer(version, one.version) {
		one.version = version
	}
}

// Retain ends the watches of a work for all objects but the given ones.
func (w *Watcher) Retain(work string, targets sets.Set[apply.Target]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for t, one := range w.watches {
		if !one.works.Has(work) || targets.Has(t) {
			continue
		}
		one.works.Delete(work)
		if len(one.works) == 0 {
			one.stop()
			delete(w.watches, t)
		}
	}
}

// Wait returns when all watches have ended, after their context.
func (w *Watcher) Wait() { w.running.Wait() }

// watchObject watches an object until the context ends. A watch that does not start at a version first delivers the object, or nothing if it does not
// exist.
func (w *Watcher) watchObject(ctx context.Context, t apply.Target, one *objectWatch, version string) {
	defer one.stop()
	objects := w.Client.Resource(t.GroupVersionResource).Namespace(t.Namespace)
	watch.Run(ctx, objects, watch.Options{FieldSelector: fields.OneTermEqualSelector("metadata.name", t.Name).String(), Version: version}, watch.Handler{
		Started: func() { w.observe(one, "") },
		Event:   func(o *metav1.PartialObjectMetadata, _ bool) { w.observe(one, o.ResourceVersion) },
		Lost:    func() { w.lost(one) },
		Failed: func(err error, delay time.Duration) {
			if err != nil {
				klog.FromContext(ctx).V(2).Info("The watch of an object has ended", "object", t.String(), "reason", err.Error(), "retryAfter", delay)
			}
		},
	})
}

// observe records a resource version, and notifies the works of the object if it is new.
func (w *Watcher) observe(one *objectWatch, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one.open && version == one.version {
		return
	}
	one.open = true
	if newer(version, one.version) {
		one.version = version
	}
	for work := range one.works {
		w.Changed(work)
	}
}

// lost records that events may be missed: works must read the object themselves.
func (w *Watcher) lost(one *objectWatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := one.open
	one.open, one.version = false, ""
	if was {
		for work := range one.works {
			w.Changed(work)
		}
	}
}

// newer compares resource versions, which are numbers in Kubernetes API servers.
func newer(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }
