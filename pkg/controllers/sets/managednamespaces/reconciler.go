// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managednamespaces writes to every cluster the namespaces that its sets request: status.managedNamespaces has those of all sets that the
// cluster is in, whatever their selectors. The cluster's agent creates them, and writes the conditions of the entries, which are preserved for as
// long as the entry stays.
//
// The membership index, fed with the changes of clusters and sets, has the sets of each cluster. A change of a set reconciles the clusters that it
// affects, a change of a cluster's labels this cluster, and a report of an agent none.
package managednamespaces

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	workers = 4
	// conflictPause is the delay until a cluster is reconciled again after a conflict.
	conflictPause = time.Second
)

type requestQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Reconciler reconciles status.managedNamespaces of one cluster.
type Reconciler struct {
	client client.Client
	asked  *asked
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller.
func SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	r := newReconciler(mgr.GetClient())
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		Watches(&clusterv1.ManagedCluster{}, r.clusters()).
		Watches(&clusterv1beta2.ManagedClusterSet{}, r.sets()).
		WithOptions(kit.Options(workers)).
		Complete(r)
}

func newReconciler(c client.Client) *Reconciler { return &Reconciler{client: c, asked: newRequested()} }

// clusters returns the handler of the events of clusters.
func (r *Reconciler) clusters() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q requestQueue) {
			r.asked.setCluster(e.Object.(*clusterv1.ManagedCluster))
			enqueue(q, e.Object.GetName())
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q requestQueue) {
			before, after := e.ObjectOld.(*clusterv1.ManagedCluster), e.ObjectNew.(*clusterv1.ManagedCluster)
			moved := r.asked.setCluster(after)
			// Agents write the status, too.
			if moved || !sameNamespaces(before.Status.ManagedNamespaces, after.Status.ManagedNamespaces) {
				enqueue(q, after.Name)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ requestQueue) {
			r.asked.deleteCluster(e.Object.GetName())
		},
	}
}

// sets returns the handler of the events of sets.
func (r *Reconciler) sets() handler.EventHandler {
	set := func(ctx context.Context, obj client.Object, q requestQueue) {
		touched, err := r.asked.setSet(obj.(*clusterv1beta2.ManagedClusterSet))
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to read the set: the namespaces that it requested before still apply", "clusterSet", obj.GetName())
		}
		enqueue(q, touched.UnsortedList()...)
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requestQueue) { set(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requestQueue) { set(ctx, e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q requestQueue) {
			enqueue(q, r.asked.deleteSet(e.Object.GetName()).UnsortedList()...)
		},
	}
}

func enqueue(q requestQueue, names ...string) {
	for _, name := range names {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	if err := r.client.Get(ctx, request.NamespacedName, cluster); err != nil {
		return reconcile.Result{}, kit.IgnoreGone(err)
	}
	want := r.asked.of(cluster.Name)
	if !cluster.DeletionTimestamp.IsZero() || sameNamespaces(want, cluster.Status.ManagedNamespaces) {
		return reconcile.Result{}, nil
	}
	for i := range want {
		for _, have := range cluster.Status.ManagedNamespaces {
			if sameNamespace(have, want[i]) {
				want[i].Conditions = have.Conditions
			}
		}
	}
	_, err := kit.PatchStatus(ctx, r.client, cluster, func(c *clusterv1.ManagedCluster) { c.Status.ManagedNamespaces = want })
	if kit.IsStale(err) {
		// Most changes of a cluster enqueue nothing here, so the conflicting one may not.
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	}
	return reconcile.Result{}, err
}
