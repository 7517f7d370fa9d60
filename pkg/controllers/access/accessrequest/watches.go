// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/clusterprotection"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	// requestIndex finds the AccessRequests that name a ClusterRequest, grantIndex the ClusterRequests that have a Cluster, profileIndex the
	// Clusters of a ClusterProfile.
	requestIndex = "spec.requestRef"
	grantIndex   = "status.cluster"
	profileIndex = "spec.profile"
)

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &v1alpha1.AccessRequest{}, requestIndex, requestOf); err != nil {
		return err
	}
	if err := indexer.IndexField(ctx, &v1alpha1.ClusterRequest{}, grantIndex, byGrant); err != nil {
		return err
	}
	return indexer.IndexField(ctx, &v1alpha1.Cluster{}, profileIndex, byProfile)
}

func requestOf(obj client.Object) []string {
	return keyOf(obj.(*v1alpha1.AccessRequest).Spec.RequestRef)
}

func byGrant(obj client.Object) []string {
	return keyOf(obj.(*v1alpha1.ClusterRequest).Status.Cluster)
}

func byProfile(obj client.Object) []string {
	return []string{obj.(*v1alpha1.Cluster).Spec.Profile}
}

func keyOf(ref *v1alpha1.ObjectReference) []string {
	if ref == nil {
		return nil
	}
	return []string{ref.NamespacedName().String()}
}

// existence passes events when a Cluster is created, when its deletion begins, and when it is gone. Its provider updates it often.
func existence() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
}

// byRequest returns the AccessRequests that name a ClusterRequest: they wait for it, or end with it.
func (r *Reconciler) byRequest(ctx context.Context, request client.Object) []reconcile.Request {
	ofRequest := client.MatchingFields{requestIndex: client.ObjectKeyFromObject(request).String()}
	return kit.Requests(ctx, r.client, &v1alpha1.AccessRequestList{}, ofRequest)
}

// waitingForRequest returns those of them that no provider has yet.
func (r *Reconciler) waitingForRequest(ctx context.Context, request client.Object) []reconcile.Request {
	return r.waiting(ctx, client.MatchingFields{requestIndex: client.ObjectKeyFromObject(request).String()})
}

// waitingForCluster returns the waiting requests that name a Cluster, or a ClusterRequest that has it.
func (r *Reconciler) waitingForCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(cluster).String()
	waiting := r.waiting(ctx, client.MatchingFields{clusterprotection.ClusterIndex: key})
	grants := &v1alpha1.ClusterRequestList{}
	r.list(ctx, grants, client.MatchingFields{grantIndex: key})
	for i := range grants.Items {
		waiting = append(waiting, r.waitingForRequest(ctx, &grants.Items[i])...)
	}
	return waiting
}

// waitingForProfile returns the waiting requests for a Cluster of a ClusterProfile.
func (r *Reconciler) waitingForProfile(ctx context.Context, profile client.Object) []reconcile.Request {
	clusters := &v1alpha1.ClusterList{}
	r.list(ctx, clusters, client.MatchingFields{profileIndex: profile.GetName()})
	var waiting []reconcile.Request
	for i := range clusters.Items {
		waiting = append(waiting, r.waitingForCluster(ctx, &clusters.Items[i])...)
	}
	return waiting
}

// waitingForPolicy returns all requests that no provider has yet.
func (r *Reconciler) waitingForPolicy(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.waiting(ctx)
}

func (r *Reconciler) waiting(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	requests := &v1alpha1.AccessRequestList{}
	r.list(ctx, requests, options...)
	var waiting []reconcile.Request
	for i := range requests.Items {
		if !r.hasProvider(&requests.Items[i]) {
			waiting = append(waiting, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&requests.Items[i])})
		}
	}
	return waiting
}

// list reads from the cache, which fails only until the cache is synced. Each of the AccessRequests is reconciled after that.
func (r *Reconciler) list(ctx context.Context, into client.ObjectList, options ...client.ListOption) {
	if err := r.client.List(ctx, into, options...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the waiting AccessRequests", "options", options)
	}
}
