// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusteravailability sets the condition Available to Unknown for clusters whose agents have stopped renewing their Lease, reconciles the
// taints of clusters with their availability, and reports clusters with a wrong clock.
//
// An agent shows that it lives by renewing the cluster's Lease. The time of the last renewal is measured by the clock of this process, when it sees
// the Lease change. The time that the agent writes may be of any clock. So no wrong clock of an agent or of the hub, and no step of either, makes a
// cluster unreachable or keeps a dead one alive. In return, a process that has just started gives every agent a whole grace period.
//
// A renewal causes no reconciliation: it moves a time in memory, which a timer checks when it expires.
package clusteravailability

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// The messages of upstream.
	messageClockSynced    = "The clock of the managed cluster is synced with the hub."
	messageClockOutOfSync = "The clock of hub and agent is out of sync. This may cause the Unknown status and affect agent functionalities."

	workers = 8
)

// The reasons of events about clusters.
const (
	// EventLost: the agent has not renewed its lease for too long.
	EventLost = "ManagedClusterLost"
	// EventNotAvailable: the agent reports that the API server of the cluster is not healthy.
	EventNotAvailable = "ManagedClusterNotAvailable"
	// EventAvailable: the cluster is available, for the first time or again.
	EventAvailable = "ManagedClusterAvailable"

	actionWatch = "Watch"

	// eventsPerSecond is the rate of events in the long run, and eventsAtOnce the burst. Events beyond them are dropped.
	eventsPerSecond, eventsAtOnce = 1, 200
)

// Reconciler reconciles the availability of one cluster.
type Reconciler struct {
	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
	clock    clock.PassiveClock
	beats    *beats
	// eventLimit limits the events: after the hub was away, its whole fleet is lost at once, and the conditions say so.
	eventLimit flowcontrol.PassiveRateLimiter
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller.
func SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder(name), clock.RealClock{})
	if err := kit.Expose(r.beats); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&clusterv1.ManagedCluster{}).
		Watches(&coordinationv1.Lease{}, r.beats).
		WithOptions(kit.Options(workers)).
		Complete(r)
}

func newReconciler(c client.Client, live client.Reader, recorder events.EventRecorder, clock clock.PassiveClock) *Reconciler {
	return &Reconciler{client: c, live: live, recorder: recorder, clock: clock, beats: newBeats(clock),
		eventLimit: flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(eventsPerSecond, eventsAtOnce, clock)}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	if err := r.client.Get(ctx, request.NamespacedName, cluster); err != nil {
		if kit.IsGone(err) {
			r.beats.forget(request.Name)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, err
	}
	if !cluster.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	written, wait, err := r.status(ctx, cluster)
	if err == nil && !written {
		// The write makes a new version of the cluster, which arrives as an event.
		err = r.taint(ctx, cluster)
	}
	if kit.IsStale(err) {
		// The cluster was changed or deleted. That arrives as an event, which causes the retry.
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	return reconcile.Result{RequeueAfter: wait}, err
}

// status writes the conditions if they have changed. It returns the time after which they may change again.
func (r *Reconciler) status(ctx context.Context, cluster *clusterv1.ManagedCluster) (written bool, wait time.Duration, err error) {
	if meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionHubAccepted) == nil {
		return false, 0, nil // it has never had a Lease
	}
	available := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionAvailable)
	unknown := available != nil && available.Status == metav1.ConditionUnknown
	grace := registration.LeaseGracePeriod(registration.LeaseDuration(cluster.Spec.LeaseDurationSeconds))
	wait = r.beats.until(cluster.Name, grace, unknown)
	if wait <= 0 && !unknown {
		// A stale watch would make the whole fleet unreachable. There are few Leases to get.
		lease := &coordinationv1.Lease{}
		err := r.live.Get(ctx, client.ObjectKey{Namespace: cluster.Name, Name: registration.LeaseName}, lease)
		switch {
		case err == nil:
			r.beats.beat(lease)
			wait = r.beats.until(cluster.Name, grace, unknown)
		case !kit.IsGone(err):
			return false, 0, fmt.Errorf("reading the cluster's Lease: %w", err)
		}
	}
	written, err = kit.PatchStatus(ctx, r.client, cluster, func(c *clusterv1.ManagedCluster) {
		now := metav1.NewTime(r.clock.Now())
		if wait <= 0 && !unknown {
			meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
				Type: registration.ConditionAvailable, Status: metav1.ConditionUnknown, Reason: registration.ReasonLeaseUpdateStopped,
				Message: registration.MessageLeaseUpdateStopped, LastTransitionTime: now,
			})
		}
		r.clockCondition(c, grace, now)
	})
	if err == nil && wait <= 0 {
		r.beats.silent(cluster.Name)
	}
	return written, max(0, wait), err
}

// clockCondition sets the condition whether the clocks of agent and hub are in sync, once a renewal by the agent was seen.
func (r *Reconciler) clockCondition(cluster *clusterv1.ManagedCluster, grace time.Duration, now metav1.Time) {
	conditions := &cluster.Status.Conditions
	if skip, ok := cluster.Annotations[registration.AnnotationSkipClockCheck]; ok && skip != "false" {
		meta.RemoveStatusCondition(conditions, registration.ConditionClockSynced)
		return
	}
	skew := r.beats.skew(cluster.Name)
	if skew == nil {
		return
	}
	condition := metav1.Condition{
		Type: registration.ConditionClockSynced, Status: metav1.ConditionTrue, Reason: registration.ReasonClockSynced,
		Message: messageClockSynced, LastTransitionTime: now,
	}
	if outOfSync(*skew, grace) {
		condition.Status, condition.Reason = metav1.ConditionFalse, registration.ReasonClockOutOfSync
		condition.Message = messageClockOutOfSync
	}
	meta.SetStatusCondition(conditions, condition)
}

// taint sets the taints by the condition Available. For a cluster that is being accepted, it waits for the finalizer or for the condition
// HubAccepted: both are written as soon as the cluster exists, and one of two concurrent writes is refused.
func (r *Reconciler) taint(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	if cluster.Spec.HubAcceptsClient && !controllerutil.ContainsFinalizer(cluster, registration.Finalizer) &&
		meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionHubAccepted) == nil {
		return nil
	}
	wanted := registration.TaintUnreachable
	available := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionAvailable)
	if available != nil {
		switch available.Status {
		case metav1.ConditionTrue:
			wanted = ""
		case metav1.ConditionFalse:
			wanted = registration.TaintUnavailable
		}
	}
	written, err := kit.Patch(ctx, r.client, cluster, func(c *clusterv1.ManagedCluster) { c.Spec.Taints = taints(c.Spec.Taints, wanted) })
	if err != nil {
		return fmt.Errorf("changing the cluster's taints: %w", err)
	}
	if written {
		r.recordEvent(cluster, available)
	}
	return nil
}

// recordEvent records an event for a new state of the condition, when the taint is written: the agent, which writes the condition as well, has no
// permission for events. A new cluster, whose state is not known yet, gets none.
func (r *Reconciler) recordEvent(cluster *clusterv1.ManagedCluster, available *metav1.Condition) {
	if available == nil || !r.eventLimit.TryAccept() {
		return
	}
	kind, reason := corev1.EventTypeWarning, EventLost
	switch available.Status {
	case metav1.ConditionTrue:
		kind, reason = corev1.EventTypeNormal, EventAvailable
	case metav1.ConditionFalse:
		reason = EventNotAvailable
	}
	conditionevents.Note(r.recorder, cluster, kind, reason, actionWatch, available.Message)
}

// taints returns the taints with the wanted one of ours, which may be "", and without the other.
func taints(before []clusterv1.Taint, wanted string) []clusterv1.Taint {
	after := slices.DeleteFunc(slices.Clone(before), func(t clusterv1.Taint) bool { return ours(t) && t.Key != wanted })
	if wanted != "" && !slices.ContainsFunc(after, func(t clusterv1.Taint) bool { return ours(t) }) {
		// The server sets the time.
		after = append(after, clusterv1.Taint{Key: wanted, Effect: clusterv1.TaintEffectNoSelect})
	}
	return after
}

// ours reports whether the hub sets this taint. Taints of others may have the same key.
func ours(t clusterv1.Taint) bool {
	return (t.Key == registration.TaintUnavailable || t.Key == registration.TaintUnreachable) && t.Value == "" &&
		t.Effect == clusterv1.TaintEffectNoSelect
}
