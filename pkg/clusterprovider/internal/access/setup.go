// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"maps"
	"reflect"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
)

// Setup sets up the controller of AccessRequests. anyOIDCPrefix accepts OIDC providers whose prefixes do not separate their names from others'.
func (r *Reconciler) Setup(mgr ctrl.Manager, options controller.Options, anyOIDCPrefix bool) error {
	r.issuers.AnyPrefix = anyOIDCPrefix
	return ctrl.NewControllerManagedBy(mgr).
		Named("accessrequest").
		For(&v1alpha1.AccessRequest{}, builder.WithPredicates(r.changed())).
		Watches(&v1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(clusterChanged)).
		WithOptions(options).
		Complete(r)
}

// changed selects events of requests that are or were ours, or were denied, by others. Our own grants and finalizers are skipped.
func (r *Reconciler) changed() predicate.Funcs {
	concerns := func(ar *v1alpha1.AccessRequest) bool { return r.Concerns(ar) || r.denials.has(ar) }
	funcs := predicate.NewPredicateFuncs(r.Concerns)
	funcs.CreateFunc = func(e event.CreateEvent) bool {
		ar := e.Object.(*v1alpha1.AccessRequest)
		r.denials.notice(ar)
		return concerns(ar)
	}
	funcs.DeleteFunc = func(e event.DeleteEvent) bool {
		r.denials.forget(e.Object.GetUID())
		r.issuers.Forget(e.Object.GetUID())
		return r.Concerns(e.Object)
	}
	funcs.UpdateFunc = func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1alpha1.AccessRequest), e.ObjectNew.(*v1alpha1.AccessRequest)
		r.denials.notice(after)
		changed := before.Generation != after.Generation ||
			before.Status.Phase != after.Status.Phase && !after.Status.IsGranted() ||
			v1alpha1.IsPrepared(before) != v1alpha1.IsPrepared(after) ||
			r.Begun(before) && !r.Begun(after) ||
			!maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations)
		return changed && (concerns(before) || concerns(after))
	}
	return funcs
}

// clusterChanged selects changes that are relevant for the access to a cluster.
var clusterChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*v1alpha1.Cluster), e.ObjectNew.(*v1alpha1.Cluster)
	return before.Status.Phase != after.Status.Phase || !reflect.DeepEqual(before.Status.Endpoints, after.Status.Endpoints) ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
}}

func (r *Reconciler) ofCluster(ctx context.Context, cluster client.Object) (requests []reconcile.Request) {
	list := &v1alpha1.AccessRequestList{}
	if err := r.client.List(ctx, list, client.MatchingFields{hub.ByCluster: client.ObjectKeyFromObject(cluster).String()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the AccessRequests of a Cluster failed", "cluster", client.ObjectKeyFromObject(cluster))
	}
	for _, ar := range list.Items {
		if r.Concerns(&ar) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&ar)})
		}
	}
	return requests
}
