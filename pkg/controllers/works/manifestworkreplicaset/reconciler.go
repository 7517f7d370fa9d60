// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifestworkreplicaset reconciles ManifestWorkReplicaSets: each cluster that the placements of a set have chosen gets a ManifestWork, and
// changes of the template are applied to the works step by step, as pkg/rollout decides.
//
// A set has no more rights than the author of its spec: the author's permissions are checked before anything is written.
package manifestworkreplicaset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	workers = 4
	// gather is the time for which changes are collected, and the pause of a set that has more to write than one round may.
	gather = 200 * time.Millisecond
	// maxWrites is the maximum number of writes of one round. It leaves time for other sets, and lets a large set follow changes between rounds.
	maxWrites = 200
	// rests is the length of the pause after a round, as a multiple of the round without its writes. A round for 10,000 clusters takes a tenth of a
	// second: while their agents report, the set takes no more than a part of a worker's time.
	rests = 4
	// spacing is the interval between two writes of the status of a set.
	spacing = time.Second
	// maxUnseen is the time for which a write counts more than the watches.
	maxUnseen = time.Minute
)

// Reconciler reconciles the works of sets.
type Reconciler struct {
	Options
	client client.Client
	clock  clock.PassiveClock
	works  *workIndex
	// recorder records events about sets.
	recorder events.EventRecorder
	// metrics are totals over all sets.
	metrics *metrics

	mu sync.Mutex
	// memories are the states of sets between rounds.
	memories map[types.NamespacedName]*memory
}

// memory is the state of a set between rounds. It is rebuilt if it is lost. Only the worker that reconciles the set uses it.
type memory struct {
	author *author
	// digests are the digests of works that have the template: the template's own, and those of the specs that the server has made of it.
	template string
	digests  []string
	// status is the time of the last write of the status, and rests the time before which no round begins.
	status, rests time.Time
	unapplied     unappliedReport
	// revise is the time before which no revision is written, after one was refused.
	revise time.Time
	// refusals are the recent refusals of clusters for the spec of the generation, by cluster and placement.
	generation int64
	refusals   map[types.NamespacedName]refusal
}

type refusal struct {
	err error
	at  time.Time
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller.
func (o Options) SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	r := newReconciler(mgr.GetClient(), mgr.GetEventRecorder(name), clock.RealClock{})
	r.Options = o
	if err := kit.Expose(r.metrics); err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).Named(name).WithOptions(kit.Options(workers))
	for _, w := range r.watches() {
		b = b.WatchesRawSource(source.Kind(mgr.GetCache(), w.kind, w.handler))
	}
	return b.Complete(r)
}

func newReconciler(c client.Client, recorder events.EventRecorder, clock clock.PassiveClock) *Reconciler {
	return &Reconciler{
		client: c, clock: clock, works: newIndex(), recorder: recorder, metrics: newMetrics(), memories: map[types.NamespacedName]*memory{},
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set := &workv1alpha1.ManifestWorkReplicaSet{}
	if err := r.client.Get(ctx, request.NamespacedName, set); err != nil {
		if kit.IsGone(err) {
			r.forget(request.NamespacedName)
			return reconcile.Result{}, r.forgetRevisions(ctx, request.NamespacedName)
		}
		return reconcile.Result{}, kit.IgnoreGone(err)
	}
	memory, began := r.remember(set), r.clock.Now()
	if rest := memory.rests.Sub(began); rest > 0 {
		return reconcile.Result{RequeueAfter: rest}, nil
	}
	r.catchUp(ctx, request.NamespacedName)
	round := &round{
		Reconciler: r, set: set, key: request.NamespacedName, now: began, left: maxWrites, refused: map[string]string{}, memory: memory,
	}
	defer func() { memory.rests = r.clock.Now().Add(rests * (r.clock.Since(began) - round.writing)) }()
	var wait time.Duration
	var err error
	if set.DeletionTimestamp.IsZero() {
		wait, err = round.run(ctx)
	} else {
		wait, err = round.finalize(ctx)
	}
	if kit.IsStale(err) || apierrors.IsAlreadyExists(err) {
		// The change arrives as an event, or was this controller's own write.
		return reconcile.Result{RequeueAfter: gather}, nil
	}
	return reconcile.Result{RequeueAfter: wait}, err
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.metrics.forget(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memories, key)
}

// remember returns the memory of a set, without what belongs to an earlier spec.
func (r *Reconciler) remember(set *workv1alpha1.ManifestWorkReplicaSet) *memory {
	r.mu.Lock()
	m := r.memories[client.ObjectKeyFromObject(set)]
	if m == nil {
		m = &memory{}
		r.memories[client.ObjectKeyFromObject(set)] = m
	}
	r.mu.Unlock()
	if template := digest(&set.Spec.ManifestWorkTemplate); m.template != template {
		m.template, m.digests = template, []string{template}
	}
	if m.generation != set.Generation || m.refusals == nil {
		m.generation, m.refusals, m.revise = set.Generation, map[types.NamespacedName]refusal{}, time.Time{}
	}
	m.author = authorOf(set, m.author)
	return m
}

// round is one reconciliation of a set.
type round struct {
	*Reconciler
	set     *workv1alpha1.ManifestWorkReplicaSet
	key     types.NamespacedName
	now     time.Time
	left    int
	memory  *memory
	rights  *rights
	targets []*placementTarget
	// surplus are the works to delete, and unapplied the clusters whose agents could not apply their works.
	surplus   []*entry
	unapplied []string
	// refused are the reasons why nothing may be written to a cluster, and failures the errors of refused writes.
	refused  map[string]string
	failures []error
	errs     []error
	// writing is the time that the writes of works have taken. It is not work of this process.
	writing time.Duration
}

// run reconciles a set, within the limits of one round. It returns the time until the next round, or 0 if none is needed.
func (r *round) run(ctx context.Context) (time.Duration, error) {
	if _, err := kit.Patch(ctx, r.client, r.set, func(set *workv1alpha1.ManifestWorkReplicaSet) {
		if !slices.Contains(set.Finalizers, work.ReplicaSetFinalizer) {
			set.Finalizers = append(set.Finalizers, work.ReplicaSetFinalizer)
		}
	}); err != nil {
		return 0, err
	}
	r.rights = r.Reconciler.rights(r.set, r.memory.author)
	var err error
	r.targets, err = r.Reconciler.targets(ctx, r.set)
	if err != nil {
		return 0, err
	}
	r.assign()
	if r.rights.unknown == "" {
		r.removeSurplus(ctx)
	}
	for _, t := range r.targets {
		if t.problem == nil {
			r.rollOut(ctx, t)
		}
	}
	wait, err := r.writeStatus(ctx)
	err = errors.Join(err, r.revise(ctx))
	return r.wait(wait), errors.Join(append(r.errs, err)...)
}

// assign finds the work for each cluster of each placement, and the surplus works.
func (r *round) assign() {
	byPlacement := map[string][]*entry{}
	for _, e := range r.works.of(r.key) {
		byPlacement[e.placement] = append(byPlacement[e.placement], e)
		if e.unapplied {
			r.unapplied = append(r.unapplied, e.cluster())
		}
	}
	slices.Sort(r.unapplied)
	r.unapplied = slices.Compact(r.unapplied)
	for _, t := range r.targets {
		if t.problem == nil {
			r.surplus = append(r.surplus, t.matchWorks(byPlacement[t.placement], r.key, r.isCurrent)...)
		}
		delete(byPlacement, t.placement)
	}
	for _, left := range byPlacement {
		for _, e := range left {
			if !e.leaving() {
				r.surplus = append(r.surplus, e)
			}
		}
	}
	slices.SortFunc(r.surplus, func(a, b *entry) int { return compareKeys(a.work, b.work) })
}

func compareKeys(a, b *workv1.ManifestWork) int {
	return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
}

// removeSurplus deletes the surplus works. The next round deletes those that are left.
func (r *round) removeSurplus(ctx context.Context) {
	for len(r.surplus) > 0 && r.left > 0 {
		r.left--
		if err := r.remove(ctx, r.surplus[0]); err != nil {
			if !isRefusal(err) {
				r.errs = append(r.errs, err)
				return
			}
			r.failures = append(r.failures, err)
		}
		r.surplus = r.surplus[1:]
	}
}

// isCurrent reports whether a work has the template.
func (r *round) isCurrent(e *entry) bool { return slices.Contains(r.memory.digests, e.digest()) }

// writeStatus writes the status, unless the last write was less than spacing ago. It returns the time until the next check.
func (r *round) writeStatus(ctx context.Context) (time.Duration, error) {
	now := r.isRolledOut()
	r.metrics.saw(r.key, now, r.targets)
	if since := r.now.Sub(r.memory.status); since < spacing {
		return spacing - since, nil
	}
	conditions := slices.Clone(r.set.Status.Conditions)
	before := meta.FindStatusCondition(conditions, workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut)
	began := metav1.Time{}
	if before != nil && before.Status == metav1.ConditionFalse {
		began = before.LastTransitionTime
	}
	changed, err := kit.PatchStatus(ctx, r.client, r.set, func(set *workv1alpha1.ManifestWorkReplicaSet) { r.status(&set.Status) })
	if changed {
		r.memory.status = r.now
		recordEvents(r.recorder, r.set, conditions)
		if now && !began.IsZero() {
			r.metrics.duration.Observe(r.now.Sub(began.Time).Seconds())
		}
	}
	if err != nil {
		return 0, kit.IgnoreGone(err)
	}
	return r.memory.unapplied.update(r.recorder, r.set, r.unapplied, r.now), nil
}

// wait returns the time until the next round.
func (r *round) wait(wait time.Duration) time.Duration {
	sooner := func(d time.Duration) {
		if wait == 0 || d < wait {
			wait = d
		}
	}
	if r.left == 0 {
		sooner(gather)
	}
	if rest := r.memory.revise.Sub(r.now); rest > 0 {
		sooner(rest)
	}
	if r.rights.asksMore {
		sooner(askAgain)
	}
	if len(r.refused) > 0 {
		sooner(deniedFor)
	}
	if len(r.failures) > 0 {
		sooner(kit.MaxBackoff)
	}
	for _, t := range r.targets {
		if isWaiting(t.plan) {
			sooner(max(t.plan.Next.Sub(r.now), gather))
		}
	}
	return wait
}

// finalize deletes the works of a set that is being deleted, and then removes the set's finalizer: with Foreground, when the works are gone.
func (r *round) finalize(ctx context.Context) (time.Duration, error) {
	if !slices.Contains(r.set.Finalizers, work.ReplicaSetFinalizer) {
		return 0, nil
	}
	works := r.works.of(r.key)
	for _, e := range works {
		if !e.leaving() {
			r.surplus = append(r.surplus, e)
		}
	}
	r.removeSurplus(ctx)
	if errs := append(r.errs, r.failures...); len(errs) > 0 {
		return 0, errors.Join(errs...) // the finalizer also stays for a work that must not be deleted
	}
	if len(r.surplus) > 0 {
		return gather, nil
	}
	if r.set.Spec.CascadeDeletionPolicy == workv1alpha1.Foreground && len(works) > 0 {
		return maxUnseen, nil // each deletion is an event; those that no watch has reported are looked up then
	}
	_, err := kit.Patch(ctx, r.client, r.set, func(set *workv1alpha1.ManifestWorkReplicaSet) {
		set.Finalizers = slices.DeleteFunc(set.Finalizers, func(f string) bool { return f == work.ReplicaSetFinalizer })
	})
	if err != nil {
		return 0, fmt.Errorf("the finalizer of the ManifestWorkReplicaSet %s: %w", r.key, err)
	}
	return 0, nil
}
