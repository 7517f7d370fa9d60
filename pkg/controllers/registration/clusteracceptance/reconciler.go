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
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	calls    callLimits
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller, and the one that deletes the namespaces.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder(reporter), clock.RealClock{}, o)
	if err := r.newIdentities().index(context.Background(), mgr.GetFieldIndexer()); err != nil {
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
	return &Reconciler{
		Options: o, client: c, live: live, recorder: recorder, clock: clock, paces: newPaces(clock), calls: newCallLimits(o.Drivers),
	}
}

func (r *Reconciler) newIdentities() *identities {
	return &identities{client: r.client, records: records{client: r.client, live: r.live}, drivers: r.Drivers}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	p := r.newPass(request.Name)
	cluster := &clusterv1.ManagedCluster{}
	if err := r.client.Get(ctx, request.NamespacedName, cluster); err == nil {
		p.cluster = cluster
	} else if !kit.IsGone(err) {
		return reconcile.Result{}, err
	}
	return p.reconcile(ctx)
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
