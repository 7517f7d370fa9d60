// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
)

// withdraw releases the cluster of a Cluster that may no longer have it, once no access to it is left. The status of the Cluster reports it
// already, so no access is granted from now on; access that is being granted is waited for. The Secrets and status of the AccessRequests are cleaned
// up at the same time: they are irrelevant to the next Cluster that gets the cluster.
func (r *Reconciler) withdraw(ctx context.Context, cluster *v1alpha1.Cluster, state clusterprovider.State) (reconcile.Result, error) {
	if state.Release == nil {
		return reconcile.Result{RequeueAfter: retryAfter(state)}, nil
	}
	ended, ok := r.access.Giving.End(cluster.UID)
	if !ok {
		return reconcile.Result{RequeueAfter: hub.RetryInterval}, nil
	}
	defer ended()
	ctx, cancel := context.WithTimeout(ctx, closeAllTimeout)
	defer cancel()
	if err := r.access.RevokeAll(ctx, cluster); apierrors.IsConflict(err) {
		return hub.ResultOf(err)
	} else if err != nil {
		return reconcile.Result{}, err
	}
	if err := state.Release(ctx); err != nil {
		return hub.ResultOf(err)
	}
	ctrl.LoggerFrom(ctx).Info("Withdrew the cluster from its Cluster and revoked all access to it", "reason", state.Info)
	return reconcile.Result{RequeueAfter: retryAfter(state)}, nil
}

// withdrawnInterval is the interval of checks whether an ignored Cluster still has its cluster.
const withdrawnInterval = 30 * time.Second

// withdrawIgnored withdraws the cluster of an ignored Cluster: otherwise users who can annotate it could keep the cluster. The object is not changed.
func (r *Reconciler) withdrawIgnored(ctx context.Context, cluster *v1alpha1.Cluster, profile clusterprovider.Profile) (reconcile.Result, error) {
	withdrawer, ok := r.provider.(clusterprovider.Withdrawer)
	if !ok || !cluster.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	result := reconcile.Result{RequeueAfter: withdrawnInterval}
	why, err := withdrawer.Withdrawn(ctx, cluster)
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("Checking whether an ignored Cluster still has its cluster failed", "reason", err.Error())
	}
	if err != nil || why == "" {
		return result, nil
	}
	state, err := r.provider.Ensure(ctx, cluster.DeepCopy(), profile)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !state.Withdrawn {
		return result, nil
	}
	return r.withdraw(ctx, cluster, state)
}
