// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leftoverclusters deletes ManagedClusters that are leftovers: they are not accepted, have no Lease, and have been so for a time that the
// hub's admin sets. They are clusters that have left, and clusters that were never accepted.
package leftoverclusters

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Reconciler deletes one cluster when its time is over.
type Reconciler struct {
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	ttl    time.Duration
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller, with the time after which a cluster is deleted.
func SetupWithManager(mgr ctrl.Manager, ttl time.Duration) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&clusterv1.ManagedCluster{}).
		WithOptions(kit.Options(1)).
		Complete(&Reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), clock: clock.RealClock{}, ttl: ttl})
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	if err := r.client.Get(ctx, request.NamespacedName, cluster); err != nil {
		return reconcile.Result{}, kit.IgnoreGone(err)
	}
	if cluster.Spec.HubAcceptsClient || !cluster.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	if wait := since(cluster).Add(r.ttl).Sub(r.clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	lease := client.ObjectKey{Namespace: cluster.Name, Name: registration.LeaseName}
	err := r.live.Get(ctx, lease, &coordinationv1.Lease{})
	switch {
	case err == nil:
		// The cluster is being denied, or belongs to an unknown program.
		return reconcile.Result{RequeueAfter: r.ttl}, nil
	case !kit.IsGone(err):
		return reconcile.Result{}, fmt.Errorf("reading the cluster's Lease: %w", err)
	}
	// If the cluster is accepted concurrently, it stays.
	err = r.client.Delete(ctx, cluster, kit.AsRead(cluster))
	if kit.IsStale(err) {
		return reconcile.Result{}, nil // the change arrives as an event
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("deleting the ManagedCluster, which is not accepted and has no Lease: %w", err)
	}
	ctrl.LoggerFrom(ctx).Info("Deleted a cluster that is not accepted", "cluster", cluster.Name, "since", since(cluster))
	return reconcile.Result{}, nil
}

// since returns the time at which a cluster was created, or denied.
func since(cluster *clusterv1.ManagedCluster) time.Time {
	at := cluster.CreationTimestamp.Time
	condition := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionHubAccepted)
	if condition != nil && condition.LastTransitionTime.After(at) {
		at = condition.LastTransitionTime.Time
	}
	return at
}
