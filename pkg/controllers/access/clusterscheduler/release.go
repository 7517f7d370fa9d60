// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// release releases the cluster of a request that is being deleted, and then removes the request's finalizer. If the cluster is deleted with the
// request, and the request asks for that, the request stays until the cluster is gone.
func (r *Reconciler) release(ctx context.Context, request *v1alpha1.ClusterRequest) error {
	held, err := r.clustersOf(ctx, request)
	if err != nil {
		return err
	}
	definition := r.config().PurposeMappings[request.Spec.Purpose]
	for i := range held {
		cluster := &held[i]
		// A finalizer on a cluster that the status does not name counts only where the request may have been given the cluster. Otherwise users who
		// can write Clusters somewhere could prevent the deletion of the request.
		given := request.Status.Cluster == nil && definition != nil && definition.trusts(cluster.Namespace, request)
		if given && waits(request, cluster) && (goesWithLast(cluster) || cluster.DeletionTimestamp != nil) {
			// Without its finalizer, only the status has the cluster to wait for.
			if err := r.writeStatus(ctx, request, request.Status.Phase, waitingForDeletion(cluster), cluster); err != nil {
				return err
			}
		}
		if err := r.free(ctx, request, cluster); err != nil {
			return err
		}
	}
	if known := request.Status.Cluster; known != nil {
		cluster := &v1alpha1.Cluster{}
		err := r.live.Get(ctx, known.NamespacedName(), cluster)
		if kit.IgnoreGone(err) != nil {
			return err
		}
		if err == nil && cluster.DeletionTimestamp != nil && cluster.GetTenancyCount() == 0 && waits(request, cluster) {
			phase := request.Status.Phase
			if !request.Status.IsDenied() {
				phase = v1alpha1.REQUEST_PENDING
			}
			return r.writeStatus(ctx, request, phase, waitingForDeletion(cluster), nil)
		}
	}
	return kit.IgnoreGone(r.writeFinalizer(ctx, request, controllerutil.RemoveFinalizer))
}

// waits reports whether the request waits for the deletion of its cluster.
func waits(request *v1alpha1.ClusterRequest, cluster *v1alpha1.Cluster) bool {
	if wait := request.Spec.WaitForClusterDeletion; wait != nil {
		return *wait
	}
	return cluster.Spec.Tenancy == v1alpha1.TENANCY_EXCLUSIVE
}

func waitingForDeletion(cluster *v1alpha1.Cluster) metav1.Condition {
	return metav1.Condition{
		Type: ConditionGranted, Status: metav1.ConditionFalse, Reason: reasonWaitingForDeletion,
		Message: fmt.Sprintf("waits until Cluster %s is gone", client.ObjectKeyFromObject(cluster)),
	}
}

// giveUp releases the clusters of a request that is denied.
func (r *Reconciler) giveUp(ctx context.Context, request *v1alpha1.ClusterRequest) error {
	held, err := r.clustersOf(ctx, request)
	for i := range held {
		if err := r.free(ctx, request, &held[i]); err != nil {
			return err
		}
	}
	return err
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
	if goesWithLast(cluster) && cluster.DeletionTimestamp == nil {
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

// goesWithLast reports whether a cluster is deleted with the only request that has it.
func goesWithLast(cluster *v1alpha1.Cluster) bool {
	return cluster.GetTenancyCount() == 1 && cluster.Labels[v1alpha1.DeleteWithoutRequestsLabel] == "true"
}
