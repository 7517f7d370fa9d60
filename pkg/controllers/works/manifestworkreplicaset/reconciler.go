// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifestworkreplicaset keeps, for each ManifestWorkReplicaSet, a ManifestWork for each cluster that its placements have chosen,
// and brings changes of the template to them step by step, as pkg/rollout decides.
//
// A set can do what the author of its spec could: the author's rights are asked for before anything is written.
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
	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
)

const (
	workers = 4
	// gather is how long changes are gathered, and how long a set rests that has more to write than one round may.
	gather = 200 * time.Millisecond
	// mostWrites is how much one round writes. A large set leaves time to others, and follows changes meanwhile.
	mostWrites = 200
	// rests is for how many times the length of a round, without its writes, a set rests after it. A round for 10,000 clusters takes a
	// tenth of a second: while they tell of themselves, it takes no more than a part of a worker's time.
	rests = 4
	// spacing is between two writes of the status of a set.
	spacing = time.Second
	// longestUnseen is how long a write counts more than what watches tell.
	longestUnseen = time.Minute
)

// Reconciler keeps the works of sets.
type Reconciler struct {
	Options
	client client.Client
	clock  clock.PassiveClock
	works  *index
	// recorder writes events about sets.
	recorder events.EventRecorder
	// metrics are about all sets.
	metrics *metrics

	mu sync.Mutex
	// memories are what is remembered of sets.
	memories map[types.NamespacedName]*memory
}

// memory is what is remembered of a set, and is found out again if it is not there. Only the one worker has it who looks at the set.
type memory struct {
	author *author
	// digests are those of works that have the template: its own, and what the server has made of it.
	template string
	digests  []string
	// status is when the status was written last, and rests until when no round begins.
	status, rests time.Time
	// unapplied says whether works could not be applied when that was told last, at told; looked is false before the first look.
	looked, unapplied bool
	told              time.Time
	// revise is before when no revision is tried, since one was refused.
	revise time.Time
	// refusals are clusters that have refused the spec of a generation a short while ago, by cluster and placement.
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
		Reconciler: r, set: set, key: request.NamespacedName, now: began, left: mostWrites, refused: map[string]string{}, memory: memory,
	}
	defer func() { memory.rests = r.clock.Now().Add(rests * (r.clock.Since(began) - round.writing)) }()
	var wait time.Duration
	var err error
	if set.DeletionTimestamp.IsZero() {
		wait, err = round.run(ctx)
	} else {
		wait, err = round.end(ctx)
	}
	if kit.IsOutdated(err) || apierrors.IsAlreadyExists(err) {
		// What has changed comes as an event, or was this controller's own write.
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

// remember is what is remembered of a set, without what was of another spec.
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

// round is one look at a set.
type round struct {
	*Reconciler
	set     *workv1alpha1.ManifestWorkReplicaSet
	key     types.NamespacedName
	now     time.Time
	left    int
	memory  *memory
	rights  *rights
	targets []*target
	// surplus are the works that are to go, and unapplied the clusters whose agents could not apply theirs.
	surplus   []*entry
	unapplied []string
	// refused says why nothing may be written to a cluster, and failures what could not be.
	refused  map[string]string
	failures []error
	errs     []error
	// writing is how long writes of works have taken. That is no work of this process.
	writing time.Duration
}

// run does what is to be done, as far as one round may, and says when to look again; never, if it is zero.
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
	if r.targets, err = r.Reconciler.targets(ctx, r.set); err != nil {
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

// assign finds the work for each cluster of each placement, and those that are too many.
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
			r.surplus = append(r.surplus, t.take(byPlacement[t.placement], r.key, r.isCurrent)...)
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

// removeSurplus deletes what is too many. What is left is for the next round.
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

// isCurrent says that a work has the template.
func (r *round) isCurrent(e *entry) bool { return slices.Contains(r.memory.digests, e.digest()) }

// writeStatus writes the status, unless it was written just now: then it says when to look again.
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
		r.tell(conditions)
		if now && !began.IsZero() {
			r.metrics.duration.Observe(r.now.Sub(began.Time).Seconds())
		}
	}
	if err != nil {
		return 0, kit.IgnoreGone(err)
	}
	return r.tellUnapplied(), nil
}

// wait is after how long to look again.
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
		sooner(kit.LongestBackoff)
	}
	for _, t := range r.targets {
		if isWaiting(t.plan) {
			sooner(max(t.plan.Next.Sub(r.now), gather))
		}
	}
	return wait
}

// end deletes the works of a set that is being deleted, and then lets it go: in the foreground, when they are gone.
func (r *round) end(ctx context.Context) (time.Duration, error) {
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
		return 0, errors.Join(errs...) // also a work that must not be deleted is not forgotten
	}
	if len(r.surplus) > 0 {
		return gather, nil
	}
	if r.set.Spec.CascadeDeletionPolicy == workv1alpha1.Foreground && len(works) > 0 {
		return longestUnseen, nil // each that goes is an event, and what no watch has told of is looked up then
	}
	_, err := kit.Patch(ctx, r.client, r.set, func(set *workv1alpha1.ManifestWorkReplicaSet) {
		set.Finalizers = slices.DeleteFunc(set.Finalizers, func(f string) bool { return f == work.ReplicaSetFinalizer })
	})
	if err != nil {
		return 0, fmt.Errorf("the finalizer of the ManifestWorkReplicaSet %s: %w", r.key, err)
	}
	return 0, nil
}
