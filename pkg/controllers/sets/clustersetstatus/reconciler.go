// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustersetstatus writes the status of every ManagedClusterSet: the condition ClusterSetEmpty, whose message has the number of the set's
// clusters.
//
// The API server knows the members of each set and serves them as clustersetmembers. The controller follows that resource instead of evaluating
// selectors again, so that the number is the one that a list of the members shows, and the cost of a change is proportional to the sets that it
// affects.
//
// A fleet that joins changes the numbers of its sets thousands of times. A status is therefore written one Interval after it was first found stale,
// with the number at that time, and not before one Spacing has passed since the last write. All state of the controller can be rebuilt; if it is
// killed at any line, its successor compares every set with its members and writes what differs.
package clustersetstatus

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	// Interval is the time between finding a status stale for the first time and writing it.
	Interval = time.Second
	// Spacing is the minimum time between two writes of the status of one set: it limits the cost of a set that changes all the time.
	Spacing = 3 * time.Second

	// The reasons of upstream for the condition ClusterSetEmpty.
	reasonNoClusterMatched = "NoClusterMatched" // no cluster is in the set
	reasonClustersSelected = "ClustersSelected" // clusters are in the set; the message says how many

	// workers is the number of sets that are reconciled concurrently.
	workers = 4
)

// Reconciler reconciles the status of one set.
type Reconciler struct {
	client client.Client
	count  func(set string) int
	clock  clock.PassiveClock

	mu sync.Mutex
	// paces are the paces of sets that were stale at the last reconciliation, or written a short while ago.
	paces map[string]writeSchedule
}

// writeSchedule has the times at which the status of a set may be written.
type writeSchedule struct {
	// due is the time of the pending write, or zero.
	due time.Time
	// next is the earliest time of the write after it.
	next time.Time
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller.
func SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	metadataClient, err := metadata.NewForConfig(mgr.GetConfig())
	if err != nil {
		return err
	}
	members := newMembers(listWatchMembers(metadataClient))
	reconciler := newReconciler(mgr.GetClient(), members.count, clock.RealClock{})
	members.waits = reconciler.waits
	if err := kit.Expose(sizes{members}); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&clusterv1beta2.ManagedClusterSet{}).
		WatchesRawSource(members).
		WithOptions(kit.OptionsFrom(workers, Interval)).
		Complete(reconciler)
}

func newReconciler(c client.Client, count func(string) int, clock clock.PassiveClock) *Reconciler {
	return &Reconciler{client: c, count: count, clock: clock, paces: map[string]writeSchedule{}}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set := &clusterv1beta2.ManagedClusterSet{}
	if err := r.client.Get(ctx, request.NamespacedName, set); err != nil {
		if kit.IsGone(err) {
			r.forget(request.Name)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, err
	}
	// From here on an event counts again: it may be about something that the condition does not include yet.
	due := r.begin(set.Name)
	condition := r.condition(set)
	if !meta.SetStatusCondition(&set.DeepCopy().Status.Conditions, condition) || !set.DeletionTimestamp.IsZero() {
		r.upToDate(set.Name)
		return reconcile.Result{}, nil
	}
	if wait := r.claim(set.Name, due); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	_, err := kit.PatchStatus(ctx, r.client, set, func(s *clusterv1beta2.ManagedClusterSet) {
		meta.SetStatusCondition(&s.Status.Conditions, condition)
	})
	return reconcile.Result{}, kit.IgnoreStale(err)
}

func (r *Reconciler) condition(set *clusterv1beta2.ManagedClusterSet) metav1.Condition {
	condition := metav1.Condition{
		Type:               clusterv1beta2.ManagedClusterSetConditionEmpty,
		Status:             metav1.ConditionTrue,
		Reason:             reasonNoClusterMatched,
		Message:            "No ManagedCluster selected",
		ObservedGeneration: set.Generation,
		LastTransitionTime: metav1.NewTime(r.clock.Now()),
	}
	if n := r.count(set.Name); n > 0 {
		condition.Status = metav1.ConditionFalse
		condition.Reason = reasonClustersSelected
		condition.Message = fmt.Sprintf("%d ManagedClusters selected", n)
	}
	return condition
}

// begin ends the wait for a write, and returns when it was due, or zero if none was pending.
func (r *Reconciler) begin(set string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.paces[set]
	if ok {
		r.paces[set] = writeSchedule{next: p.next}
	}
	return p.due
}

// claim returns how long the status of a set must wait, or 0 if it may be written now: then the next write must wait for one Spacing, also if this
// one fails. due is the time until which the set has waited already, or zero.
func (r *Reconciler) claim(set string, due time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	p := r.paces[set]
	p.due = due
	if due.IsZero() {
		p.due = now.Add(Interval)
		if p.due.Before(p.next) {
			p.due = p.next
		}
	}
	wait := p.due.Sub(now)
	if wait <= 0 {
		p = writeSchedule{next: now.Add(Spacing)}
	}
	r.paces[set] = p
	return max(wait, 0)
}

// waits reports whether a set will be reconciled anyway: events until then need no reconciliation.
func (r *Reconciler) waits(set string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clock.Now().Before(r.paces[set].due)
}

// upToDate cancels the pending write of a set. The next one waits for a whole Interval again.
func (r *Reconciler) upToDate(set string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.paces[set]; ok && r.clock.Now().Before(p.next) {
		r.paces[set] = writeSchedule{next: p.next}
		return
	}
	delete(r.paces, set)
}

// forget deletes the state of a set that is gone.
func (r *Reconciler) forget(set string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.paces, set)
}
