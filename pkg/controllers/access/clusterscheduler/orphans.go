// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// orphans releases Clusters of requests that are gone and did not release them, because their finalizer was removed by hand. They would count as
// users of the Cluster forever, since nothing else removes their finalizers from it.
type orphans struct{ scheduler *Reconciler }

func setupOrphans(mgr ctrl.Manager, r *Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("clusterscheduler-orphans").
		For(&v1alpha1.Cluster{}, builder.WithPredicates(onCreateOrAssign())).
		Watches(&v1alpha1.ClusterRequest{}, handler.EnqueueRequestsFromMapFunc(r.clustersHeldBy), builder.WithPredicates(onDelete())).
		WithOptions(kit.Options(1)).
		Complete(orphans{scheduler: r})
}

// Reconcile implements reconcile.Reconciler.
func (o orphans) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster := &v1alpha1.Cluster{}
	if err := o.scheduler.client.Get(ctx, req.NamespacedName, cluster); err != nil {
		return reconcile.Result{}, kit.IgnoreGone(err)
	}
	if !o.scheduler.config().schedules() {
		return reconcile.Result{}, nil
	}
	gone, err := o.scheduler.gone(ctx, cluster.GetRequestUIDs())
	for _, uid := range sets.List(gone) {
		if err = o.reclaim(ctx, cluster, uid); err != nil {
			break
		}
	}
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: retryInterval}, nil
	}
	return reconcile.Result{}, err
}

// reclaim releases the cluster of a request that is gone. If the status of a request names the cluster, it is about to hold it again, as after a
// restore, which gives every request a different UID: the cluster stays for it.
func (o orphans) reclaim(ctx context.Context, cluster *v1alpha1.Cluster, uid string) error {
	ctrl.LoggerFrom(ctx).Info("Releasing the Cluster of a ClusterRequest that no longer exists", "uid", uid)
	request := &v1alpha1.ClusterRequest{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
	if len(o.scheduler.requestsBy(ctx, clusterIndex, client.ObjectKeyFromObject(cluster).String())) > 0 {
		return o.scheduler.removeFinalizer(ctx, cluster, request.FinalizerForCluster())
	}
	return o.scheduler.free(ctx, request, cluster)
}

// gone returns those UIDs that no request has. The cache may not have an object that was just created.
func (r *Reconciler) gone(ctx context.Context, uids sets.Set[string]) (sets.Set[string], error) {
	gone := sets.New[string]()
	for uid := range uids {
		if len(r.requestsBy(ctx, uidIndex, uid)) == 0 {
			gone.Insert(uid)
		}
	}
	if gone.Len() == 0 {
		return gone, nil
	}
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("ClusterRequestList"))
	if err := r.live.List(ctx, all); err != nil {
		return nil, err
	}
	for i := range all.Items {
		gone.Delete(string(all.Items[i].UID))
	}
	return gone, nil
}

// clustersHeldBy returns the clusters that a request has.
func (r *Reconciler) clustersHeldBy(ctx context.Context, request client.Object) []reconcile.Request {
	return kit.Requests(ctx, r.client, &v1alpha1.ClusterList{}, client.MatchingFields{holderIndex: string(request.GetUID())})
}

// onCreateOrAssign passes events when a cluster exists, and when it is given to a request.
func onCreateOrAssign() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*v1alpha1.Cluster).GetRequestUIDs(), e.ObjectNew.(*v1alpha1.Cluster).GetRequestUIDs()
			return !before.IsSuperset(after)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// onDelete passes events when an object is gone.
func onDelete() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}
