// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusteracceptance creates on the hub what accepted clusters need, and deletes it again: a namespace, roles and their bindings, a Lease,
// and, by the cluster's registration driver, an identity.
//
// The grant of a cluster is pinned: the driver's record is written to a ConfigMap, which its agent cannot change, before anything is granted, and
// it stays until everything has been revoked (pkg/controllers/registration/record). So a process may end at any line, the annotations of a cluster
// may change at any time, and the ManagedCluster itself may vanish: the record says what must be revoked.
//
// Decisions to grant and to revoke are based on live reads, and everything else on caches: a reconciliation that finds nothing to do sends no
// request.
package clusteracceptance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// workers is the number of clusters that are reconciled concurrently, and callers how many of them may wait for one driver: if its cloud does
	// not respond, the others are free for the clusters of other drivers.
	workers = 64
	callers = workers / 2
	// callPatience is the time for which a worker waits until it may call a driver. Then it requeues the cluster after busyDriver, up to twice
	// that.
	callPatience = 100 * time.Millisecond
	busyDriver   = 3 * time.Second
	// driverTimeout limits one call of a driver.
	driverTimeout = time.Minute

	// reporter is the name of the controller in events.
	reporter = "clusteracceptance"
)

// Options are the settings of the controller.
type Options struct {
	Drivers driver.Drivers
	// AutoApproval lets drivers accept clusters without an admin.
	AutoApproval bool
	// AgentRoles are the permissions of agents outside of the namespaces of their clusters, and the roles that grant them.
	AgentRoles agentroles.Options
}

// Reconciler reconciles what the hub has for one cluster.
type Reconciler struct {
	Options
	// client reads from the caches, live from the API server.
	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
	clock    clock.PassiveClock
	paces    *paces
	// busy limits the concurrent calls, by the name of the driver.
	busy map[string]chan struct{}
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller, and the one that deletes the namespaces.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder(reporter), clock.RealClock{}, o)
	if err := r.index(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	ofCluster := handler.EnqueueRequestsFromMapFunc(kit.ByLabel(registration.ClusterNameLabel))
	b := ctrl.NewControllerManagedBy(mgr).
		Named(reporter).
		For(&clusterv1.ManagedCluster{}).
		Watches(&corev1.Namespace{}, ofCluster).
		Watches(&corev1.ConfigMap{}, ofCluster).
		Watches(&rbacv1.ClusterRole{}, ofCluster).
		Watches(&rbacv1.ClusterRoleBinding{}, ofCluster).
		Watches(&rbacv1.RoleBinding{}, ofCluster).
		// A Lease changes whenever its agent renews it, which does not matter here.
		Watches(&coordinationv1.Lease{}, ofCluster, builder.WithPredicates(kit.Existence())).
		WithOptions(kit.Options(workers))
	if o.AutoApproval {
		for _, by := range o.Drivers {
			if watcher, ok := by.(driver.Watcher); ok {
				for _, object := range watcher.Watches() {
					b = b.Watches(object, ofCluster)
				}
			}
		}
	}
	if err := b.Complete(r); err != nil {
		return err
	}
	return setupNamespaces(mgr)
}

func newReconciler(c client.Client, live client.Reader, recorder events.EventRecorder, clock clock.PassiveClock, o Options) *Reconciler {
	r := &Reconciler{
		Options: o, client: c, live: live, recorder: recorder, clock: clock, paces: newPaces(clock), busy: map[string]chan struct{}{},
	}
	for _, driver := range o.Drivers {
		r.busy[driver.Name()] = make(chan struct{}, callers)
	}
	return r
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	err := r.client.Get(ctx, request.NamespacedName, cluster)
	switch {
	case kit.IsGone(err):
		cluster = nil
	case err != nil:
		return reconcile.Result{}, err
	}
	if err := r.copyCached(ctx, request.Name); err != nil {
		return r.settle(ctx, cluster, err)
	}
	switch {
	case cluster == nil:
		return r.settle(ctx, nil, r.orphan(ctx, request.Name))
	case !cluster.DeletionTimestamp.IsZero():
		return r.settle(ctx, cluster, r.remove(ctx, cluster))
	case cluster.Spec.HubAcceptsClient:
		return r.settle(ctx, cluster, r.accept(ctx, cluster))
	case r.wasAccepted(ctx, cluster):
		return r.settle(ctx, cluster, r.deny(ctx, cluster))
	case r.AutoApproval:
		return r.settle(ctx, cluster, r.autoApprove(ctx, cluster))
	}
	return reconcile.Result{}, nil
}

// wasAccepted reports whether the hub may have objects of the cluster.
func (r *Reconciler) wasAccepted(ctx context.Context, cluster *clusterv1.ManagedCluster) bool {
	return slices.Contains(cluster.Finalizers, registration.Finalizer) ||
		meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionHubAccepted) != nil ||
		r.cached(ctx, record.New(cluster.Name), client.ObjectKeyFromObject(record.New(cluster.Name))) ||
		r.cached(ctx, &rbacv1.ClusterRole{}, client.ObjectKey{Name: registration.ClusterRole(cluster.Name)})
}

// cached reports whether a cache has an object. Caches have only objects with the label of a cluster.
func (r *Reconciler) cached(ctx context.Context, obj client.Object, key client.ObjectKey) bool {
	return !kit.IsGone(r.client.Get(ctx, key, obj))
}

// failed returns an Outcome for the condition HubAccepted. If after is 0, an event causes the next attempt.
func failed(after time.Duration, format string, args ...any) error {
	return &kit.Outcome{Reason: registration.ReasonError, Message: fmt.Sprintf(format, args...), RequeueAfter: after}
}

// repeated returns the Outcome of the last call of a driver, until the next one is due.
func repeated(after time.Duration, last error) error {
	if last == nil {
		return kit.Requeue(after)
	}
	return &kit.Outcome{Reason: registration.ReasonError, Message: last.Error(), RequeueAfter: after, Repeated: true}
}

// remaining returns an Outcome for the condition Deleting: what a cluster that is being deleted waits for.
func remaining(after time.Duration, format string, args ...any) error {
	return &kit.Outcome{Reason: registration.ReasonResourceRemaining, Message: fmt.Sprintf(format, args...), RequeueAfter: after}
}

// isRequeue reports whether an attempt must be made later, and nothing else is known.
func isRequeue(err error) bool {
	var out *kit.Outcome
	return errors.As(err, &out) && out.Reason == ""
}

// settle converts the error of a reconciliation to a result, and shows it. Drivers have a backoff of their own: each failure writes a condition,
// which comes back as an event, and the queue's backoff does not delay events.
func (r *Reconciler) settle(ctx context.Context, cluster *clusterv1.ManagedCluster, err error) (reconcile.Result, error) {
	var out *kit.Outcome
	switch {
	case err == nil:
		return reconcile.Result{}, nil
	case errors.As(err, &out):
		result := reconcile.Result{RequeueAfter: out.RequeueAfter}
		if out.Reason == "" || out.Reason == registration.ReasonResourceRemaining {
			return result, nil
		}
		if !out.Repeated {
			ctrl.LoggerFrom(ctx).Error(out, "Could not complete the registration of the cluster")
		}
		return result, r.show(ctx, cluster, out.Reason, out.Message)
	case kit.IsStale(err):
		// The read was stale. The change arrives as an event, usually sooner than this.
		ctrl.LoggerFrom(ctx).V(2).Info("Retrying with the current objects", "reason", err.Error())
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	if shown := r.show(ctx, cluster, registration.ReasonError, err.Error()); shown != nil {
		ctrl.LoggerFrom(ctx).Error(shown, "Could not write the condition of the cluster")
	}
	return reconcile.Result{}, err
}

// show writes an error to the cluster's condition.
func (r *Reconciler) show(ctx context.Context, cluster *clusterv1.ManagedCluster, reason, message string) error {
	if cluster == nil || ctx.Err() != nil {
		return nil
	}
	return r.condition(ctx, cluster, metav1.ConditionFalse, reason, kit.Message(message))
}

// condition writes the condition HubAccepted, and an event if it is new.
func (r *Reconciler) condition(ctx context.Context, cluster *clusterv1.ManagedCluster, status metav1.ConditionStatus,
	reason, message string) error {
	cluster = r.latest(ctx, cluster)
	before := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionHubAccepted)
	if before != nil && before.Status == status && before.Reason == reason && before.Message == message {
		// Not for the generation alone, which every taint changes.
		return nil
	}
	_, err := kit.PatchStatus(ctx, r.client, cluster, func(c *clusterv1.ManagedCluster) {
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
			Type: registration.ConditionHubAccepted, Status: status, Reason: reason, Message: message,
			ObservedGeneration: cluster.Generation, LastTransitionTime: metav1.NewTime(r.clock.Now()),
		})
	})
	if kit.IsStale(err) {
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case reason == registration.ReasonError, reason == registration.ReasonNamespaceTerminating && (before == nil || before.Reason != reason):
		r.event(cluster, corev1.EventTypeWarning, "ManagedClusterRegistrationFailed", message)
	case reason == registration.ReasonNamespaceTerminating: // what is left changes often
	case before == nil || before.Reason != reason:
		if reason == registration.ReasonAccepted {
			r.event(cluster, corev1.EventTypeNormal, "ManagedClusterAccepted",
				fmt.Sprintf("The cluster %s is accepted", cluster.Name))
		} else {
			r.event(cluster, corev1.EventTypeNormal, "ManagedClusterDenied",
				fmt.Sprintf("The cluster %s is denied", cluster.Name))
		}
	case before.Message != message && message != registration.MessageAccepted:
		r.event(cluster, corev1.EventTypeWarning, "ManagedClusterRegistrationChanged", message)
	}
	return nil
}

// latest returns the cluster of the cache if it is newer and has not been accepted, denied or deleted since. The taint is written while a cluster
// is being accepted: with the earlier version, the condition would be refused.
func (r *Reconciler) latest(ctx context.Context, cluster *clusterv1.ManagedCluster) *clusterv1.ManagedCluster {
	now := &clusterv1.ManagedCluster{}
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(cluster), now); err != nil || now.UID != cluster.UID ||
		now.Spec.HubAcceptsClient != cluster.Spec.HubAcceptsClient || !now.DeletionTimestamp.Equal(cluster.DeletionTimestamp) ||
		kit.CompareVersions(now.ResourceVersion, cluster.ResourceVersion) <= 0 {
		return cluster
	}
	return now
}

func (r *Reconciler) event(cluster *clusterv1.ManagedCluster, kind, reason, message string) {
	r.recorder.Eventf(cluster, nil, kind, reason, "Register", "%s", kit.Message(message))
}
