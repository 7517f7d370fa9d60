// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ComparableObject is a pointer to a kind.
type ComparableObject interface {
	client.Object
	comparable
}

// Change is a change of an object. A new object has no Before, a deleted one no After.
type Change[T ComparableObject] struct {
	Before, After T
	// Known reports that the object existed before this process started.
	Known bool
}

// Follow calls tell for each change of the objects of a kind in the manager's cache, sequentially, beginning with the existing ones. Before is
// always the previous After. synced reports whether all existing objects were passed.
func Follow[T ComparableObject](ctx context.Context, mgr ctrl.Manager, kind T, tell func(Change[T])) (synced func() bool, err error) {
	informer, err := mgr.GetCache().GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	registration, err := informer.AddEventHandler(follower[T]{tell})
	if err != nil {
		return nil, err
	}
	go func() {
		// The next leader in this process has followers of its own.
		<-ctx.Done()
		_ = informer.RemoveEventHandler(registration)
	}()
	return registration.HasSynced, nil
}

type follower[T ComparableObject] struct{ tell func(Change[T]) }

var _ toolscache.ResourceEventHandler = follower[client.Object]{}

// OnAdd implements cache.ResourceEventHandler.
func (f follower[T]) OnAdd(obj any, known bool) {
	if after, ok := obj.(T); ok {
		f.tell(Change[T]{After: after, Known: known})
	}
}

// OnUpdate implements cache.ResourceEventHandler.
func (f follower[T]) OnUpdate(old, obj any) {
	before, ok := old.(T)
	if after, also := obj.(T); ok && also {
		f.tell(Change[T]{Before: before, After: after})
	}
}

// OnDelete implements cache.ResourceEventHandler.
func (f follower[T]) OnDelete(obj any) {
	if missed, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = missed.Obj // the last known version
	}
	if before, ok := obj.(T); ok {
		f.tell(Change[T]{Before: before})
	}
}

// Tally counts objects by the values of labels, as they change: the cost of a scrape depends on the number of series, and not on the number of
// objects.
type Tally[T ComparableObject] struct {
	desc *prometheus.Desc
	of   func(T) []string

	mu     sync.Mutex
	counts map[string]int
}

// between is in no value of a label.
const between = "\xff"

// NewTally returns a tally that counts by the result of a function: the values of the labels, or nil for an object that does not count. The
// function must be deterministic, and must not have more different results than there may be series. The series of zero exist from the start, so
// that alerts work before the first object.
func NewTally[T ComparableObject](desc *prometheus.Desc, of func(T) []string, zero ...[]string) *Tally[T] {
	t := &Tally[T]{desc: desc, of: of, counts: map[string]int{}}
	for _, values := range zero {
		t.counts[strings.Join(values, between)] = 0
	}
	return t
}

// Observe counts a change.
func (t *Tally[T]) Observe(c Change[T]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(c.Before, -1)
	t.add(c.After, 1)
}

func (t *Tally[T]) add(object T, n int) {
	var none T
	if object == none {
		return
	}
	if values := t.of(object); values != nil {
		t.counts[strings.Join(values, between)] += n
	}
}

// Describe implements prometheus.Collector.
func (t *Tally[T]) Describe(to chan<- *prometheus.Desc) { to <- t.desc }

// Collect implements prometheus.Collector.
func (t *Tally[T]) Collect(to chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, n := range t.counts {
		to <- prometheus.MustNewConstMetric(t.desc, prometheus.GaugeValue, float64(n), strings.Split(key, between)...)
	}
}

// ExposeTally counts the objects of a kind in the manager's cache, and exposes it once all are counted.
func ExposeTally[T ComparableObject](ctx context.Context, mgr ctrl.Manager, kind T, tally *Tally[T]) error {
	synced, err := Follow(ctx, mgr, kind, tally.Observe)
	if err != nil {
		return err
	}
	return Expose(Once(synced, tally))
}

// Once returns a collector that collects nothing until all objects are known: incomplete numbers are never exposed.
func Once(synced func() bool, c prometheus.Collector) prometheus.Collector { return held{c, synced} }

type held struct {
	prometheus.Collector
	synced func() bool
}

// Collect implements prometheus.Collector.
func (h held) Collect(to chan<- prometheus.Metric) {
	if h.synced() {
		h.Collector.Collect(to)
	}
}
