// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placementscheduler writes the PlacementDecisions and the status of every Placement. pkg/placement decides which clusters are chosen, and
// in which order what is written; this package passes it the objects and applies its results.
//
// All watched objects go into one placement.Scheduler, and nothing is scheduled before all of them are known: a placement that is scheduled without its
// clusters would lose them. A change only enqueues a round, which a moment later processes all changes since the last one. Each placement with a
// result is then written by a worker, and is in no other round until that is done. All state of the process can be rebuilt: after it is killed
// between two writes, the next one schedules from the existing objects, and continues.
package placementscheduler

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/placement"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
)

const (
	// workers is the number of placements that are written concurrently.
	workers = 8
	// gather is the time for which a change waits for others, to be in the same round with them.
	gather = 100 * time.Millisecond
)

// everything is the request for a round. Other requests are for placements whose results must be written.
var everything = reconcile.Request{}

// errNotWritten puts a placement into the next round again.
var errNotWritten = errors.New("the result was not written")

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Reconciler schedules placements, and writes the results.
type Reconciler struct {
	client   client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock
	metrics  *metrics
	// backoff is for placements that others changed while they were being written, which is not an error.
	backoff workqueue.TypedRateLimiter[types.NamespacedName]
	// queue is set before the first request.
	queue queue

	scheduler sharedScheduler

	// results is held for a moment only.
	results sync.Mutex
	// ready are results that no worker has taken yet, and taken those that one has. A result that stays taken could not be written.
	ready, taken map[types.NamespacedName]*work
}

// work is a result to be written, and what it was computed from.
type work struct {
	result    *run.Result
	placement *clusterv1beta1.Placement
	// decisions are by name, in the version of the last write.
	decisions map[string]*clusterv1beta1.PlacementDecision
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	r := newReconciler(mgr.GetClient(), mgr.GetEventRecorder(name), clock.RealClock{})
	for _, c := range r.metrics.all() {
		if err := kit.Expose(c); err != nil {
			return err
		}
	}
	if err := kit.ExposeTally(ctx, mgr, &clusterv1beta1.Placement{}, newTally()); err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).Named(name).WithOptions(kit.Options(workers))
	for _, s := range r.sources(mgr.GetCache()) {
		b = b.WatchesRawSource(s)
	}
	return b.Complete(r)
}

// sources returns the sources of the controller. All of them have delivered the existing objects before the first request is handled.
func (r *Reconciler) sources(from cache.Cache) []source.Source {
	sources := []source.Source{source.Func(func(_ context.Context, q queue) error {
		r.queue = q
		return nil
	})}
	for _, w := range r.scheduler.watches() {
		sources = append(sources, source.Kind(from, w.kind, w.handler))
	}
	return sources
}

func newReconciler(c client.Client, recorder events.EventRecorder, clock clock.PassiveClock) *Reconciler {
	r := &Reconciler{
		client: c, recorder: recorder, clock: clock, metrics: newMetrics(),
		backoff:   workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](kit.FirstBackoff, kit.MaxBackoff),
		scheduler: sharedScheduler{clock: clock, hub: placement.NewScheduler(), unseenDecisions: unseen{}, unseenPlacements: unseen{}},
		ready:     map[types.NamespacedName]*work{}, taken: map[types.NamespacedName]*work{},
	}
	r.scheduler.hub.Timing = r.metrics.took
	return r
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if request == everything {
		return reconcile.Result{RequeueAfter: r.round(ctx)}, nil
	}
	key := request.NamespacedName
	w := r.resultFor(ctx, key)
	if w == nil {
		r.backoff.Forget(key)
		return reconcile.Result{}, nil
	}
	begun := time.Now()
	err := r.write(ctx, key, w)
	r.metrics.bind.Observe(time.Since(begun).Seconds())
	switch {
	case err == nil:
		r.backoff.Forget(key)
		r.written(key, w)
		return reconcile.Result{}, nil
	case kit.IsStale(err) || apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// The last error also means that the placement is being deleted.
		return reconcile.Result{RequeueAfter: r.backoff.When(key)}, nil
	case isRefused(err):
		return reconcile.Result{RequeueAfter: r.backoff.When(key)}, r.reportRefused(ctx, w, err)
	default:
		return reconcile.Result{}, err
	}
}

// round schedules what changes have affected. It returns the time until the next round, or 0 if none is needed without a change.
func (r *Reconciler) round(ctx context.Context) time.Duration {
	r.scheduler.enter()
	defer r.scheduler.mu.Unlock()
	now := r.clock.Now()
	r.scheduler.catchUp(ctx, r.client, now)
	r.schedule(ctx, types.NamespacedName{})
	next := r.scheduler.hub.Next(now)
	for _, u := range []unseen{r.scheduler.unseenDecisions, r.scheduler.unseenPlacements} {
		if due := u.due(); next.IsZero() || !due.IsZero() && due.Before(next) {
			next = due
		}
	}
	if next.IsZero() {
		return 0
	}
	return max(next.Sub(now), gather)
}

// schedule runs a round, and enqueues its results for writing, except that of the placement own, which the caller writes.
func (r *Reconciler) schedule(ctx context.Context, own types.NamespacedName) {
	now := r.clock.Now()
	results, err := r.scheduler.hub.Round(ctx, now)
	if err != nil && ctx.Err() == nil {
		ctrl.LoggerFrom(ctx).Error(err, "Some placements could not be scheduled, and are not changed")
	}
	for key, result := range results {
		w := &work{result: result, placement: r.scheduler.hub.Placement(key), decisions: map[string]*clusterv1beta1.PlacementDecision{}}
		for _, d := range r.scheduler.hub.State(w.placement, now).Decisions {
			w.decisions[d.Name] = d
		}
		r.results.Lock()
		r.ready[key] = w
		r.results.Unlock()
		if key != own {
			r.queue.Add(reconcile.Request{NamespacedName: key})
		}
	}
}

// resultFor returns the result for a placement, or nil. If the last one could not be written, or the worker has panicked, the placement is scheduled
// again, with what is known now.
func (r *Reconciler) resultFor(ctx context.Context, key types.NamespacedName) *work {
	r.results.Lock()
	failed := r.taken[key]
	delete(r.taken, key)
	r.results.Unlock()
	if failed != nil {
		r.again(ctx, key, failed)
	}
	r.results.Lock()
	defer r.results.Unlock()
	w := r.ready[key]
	delete(r.ready, key)
	if w != nil {
		r.taken[key] = w
	}
	return w
}

// again schedules a placement whose result was not written.
func (r *Reconciler) again(ctx context.Context, key types.NamespacedName, failed *work) {
	r.scheduler.enter()
	defer r.scheduler.mu.Unlock()
	if r.scheduler.isCurrent(failed.placement) {
		r.scheduler.hub.Written(key, errNotWritten)
		r.schedule(ctx, key)
		// The next round computes when another one is needed.
		r.queue.AddAfter(everything, gather)
	}
}

// written ends what take has begun.
func (r *Reconciler) written(key types.NamespacedName, w *work) {
	r.results.Lock()
	delete(r.taken, key)
	r.results.Unlock()
	r.scheduler.enqueue(func() {
		if r.scheduler.isCurrent(w.placement) {
			r.scheduler.hub.Written(key, nil)
		}
	})
	// Changes since the round were put off.
	r.queue.AddAfter(everything, gather)
}
