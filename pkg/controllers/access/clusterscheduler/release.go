// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// release returns the steps that release the cluster of a request that is being deleted. If the cluster is deleted with the request, and the request
// asks for that, the request exists until the cluster is gone.
func (p *pass) release() []kit.Step {
	return []kit.Step{
		{Name: "release the clusters", Do: p.releaseHeld},
		{Name: "wait for the deletion of the cluster", Do: p.awaitDeletion},
		{Name: "remove the finalizer from the request", Do: p.removeRequestFinalizer},
	}
}

// releaseHeld releases the clusters that the request has.
func (p *pass) releaseHeld(ctx context.Context) error {
	held, err := p.clustersOf(ctx, p.request)
	if err != nil {
		return err
	}
	for i := range held {
		cluster := &held[i]
		// A finalizer on a cluster that the status does not name counts only where the request may have been given the cluster. Otherwise users who
		// can write Clusters somewhere could prevent the deletion of the request.
		given := p.request.Status.Cluster == nil && p.definition != nil && p.definition.trusts(cluster.Namespace, p.request)
		if given && waits(p.request, cluster) && (deletedWithLast(cluster) || cluster.DeletionTimestamp != nil) {
			// Without its finalizer, only the status has the cluster to wait for.
			p.cluster = cluster
			if err := p.writeStatus(ctx, p.request.Status.Phase, waitingForDeletion(cluster)); err != nil {
				return err
			}
		}
		if err := p.free(ctx, p.request, cluster); err != nil {
			return err
		}
	}
	return nil
}

// awaitDeletion ends the reconciliation while the request waits for the deletion of its cluster.
func (p *pass) awaitDeletion(ctx context.Context) error {
	if p.request.Status.Cluster == nil {
		return nil
	}
	cluster := &v1alpha1.Cluster{}
	if err := p.live.Get(ctx, p.request.Status.Cluster.NamespacedName(), cluster); err != nil {
		return kit.IgnoreGone(err)
	}
	if cluster.DeletionTimestamp == nil || cluster.GetTenancyCount() > 0 || !waits(p.request, cluster) {
		return nil
	}
	phase := p.request.Status.Phase
	if !p.request.Status.IsDenied() {
		phase = v1alpha1.REQUEST_PENDING
	}
	return cmp.Or(p.writeStatus(ctx, phase, waitingForDeletion(cluster)), errDone)
}

// removeRequestFinalizer removes the finalizer of the request.
func (p *pass) removeRequestFinalizer(ctx context.Context) error {
	_, err := kit.Patch(ctx, p.client, p.request, func(r *v1alpha1.ClusterRequest) { controllerutil.RemoveFinalizer(r, v1alpha1.ClusterRequestFinalizer) })
	return kit.IgnoreGone(err)
}

// releaseDenied releases the clusters of a request that is denied.
func (p *pass) releaseDenied(ctx context.Context) error {
	held, err := p.clustersOf(ctx, p.request)
	for i := range held {
		if err := p.free(ctx, p.request, &held[i]); err != nil {
			return err
		}
	}
	return err
}

// waits reports whether the request waits for the deletion of its cluster.
func waits(request *v1alpha1.ClusterRequest, cluster *v1alpha1.Cluster) bool {
	if wait := request.Spec.WaitForClusterDeletion; wait != nil {
		return *wait
	}
	return cluster.Spec.Tenancy == v1alpha1.TENANCY_EXCLUSIVE
}

// waitingForDeletion returns the condition of a request that waits for the deletion of its cluster.
func waitingForDeletion(cluster *v1alpha1.Cluster) metav1.Condition {
	return metav1.Condition{
		Type: ConditionGranted, Status: metav1.ConditionFalse, Reason: reasonWaitingForDeletion,
		Message: fmt.Sprintf("waits until Cluster %s is gone", client.ObjectKeyFromObject(cluster)),
	}
}

// clustersOf returns the clusters that the request has, whatever their labels are now.
func (r *Reconciler) clustersOf(ctx context.Context, request *v1alpha1.ClusterRequest) ([]v1alpha1.Cluster, error) {
	clusters := &v1alpha1.ClusterList{}
	err := r.client.List(ctx, clusters, client.MatchingFields{holderIndex: string(request.UID)})
	return clusters.Items, err
}

// free releases a cluster of a request. A cluster is deleted with its last request, if its label says so. The deletion comes before the removal of
// the finalizer, since without it the cluster would not be found again. Both are conditional on the version that was read, so that of two last
// requests one deletes the cluster.
func (r *Reconciler) free(ctx context.Context, request *v1alpha1.ClusterRequest, cluster *v1alpha1.Cluster) error {
	if deletedWithLast(cluster) && cluster.DeletionTimestamp == nil {
		asRead := kit.AsRead(cluster)
		if err := r.client.Delete(ctx, cluster, asRead); err != nil {
			return kit.IgnoreGone(err)
		}
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return kit.IgnoreGone(err)
		}
	}
	return r.removeFinalizer(ctx, cluster, request.FinalizerForCluster())
}

// removeFinalizer removes a finalizer from a cluster that is still as it was read.
func (r *Reconciler) removeFinalizer(ctx context.Context, cluster *v1alpha1.Cluster, finalizer string) error {
	_, err := kit.Patch(ctx, r.client, cluster, func(c *v1alpha1.Cluster) { controllerutil.RemoveFinalizer(c, finalizer) })
	return kit.IgnoreGone(err)
}

// deletedWithLast reports whether a cluster is deleted with the only request that has it.
func deletedWithLast(cluster *v1alpha1.Cluster) bool {
	return cluster.GetTenancyCount() == 1 && cluster.Labels[v1alpha1.DeleteWithoutRequestsLabel] == "true"
}
