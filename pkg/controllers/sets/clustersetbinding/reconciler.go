// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustersetbinding writes the status of every ManagedClusterSetBinding: the condition Bound, which says
// whether the bound set exists.
//
// A binding may be made before its set, and a set may be deleted while it is bound: a namespace learns either only
// from this condition. Of a set nothing but its existence counts, so its changes, such as a status every second, cause
// no work here.
package clustersetbinding

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
)

const (
	// Upstream's reasons of the condition Bound. It has no messages.
	reasonClusterSetBound    = "ClusterSetBound"
	reasonClusterSetNotFound = "ClusterSetNotFound"

	// setIndex finds the bindings of a set.
	setIndex = "spec.clusterSet"

	firstBackoff   = 100 * time.Millisecond
	longestBackoff = 30 * time.Second
)

// Reconciler brings the status of one binding up to date.
type Reconciler struct {
	client client.Client
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	binding := &clusterv1beta2.ManagedClusterSetBinding{}
	if err := mgr.GetFieldIndexer().IndexField(ctx, binding, setIndex, boundSet); err != nil {
		return err
	}
	r := &Reconciler{client: mgr.GetClient()}
	return ctrl.NewControllerManagedBy(mgr).
		Named("clustersetbinding").
		For(binding).
		Watches(&clusterv1beta2.ManagedClusterSet{}, handler.EnqueueRequestsFromMapFunc(r.bindingsOf),
			builder.WithPredicates(existence())).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				firstBackoff, longestBackoff),
		}).
		Complete(r)
}

// existence lets through that a set comes and that it goes.
func existence() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

func boundSet(obj client.Object) []string {
	return []string{obj.(*clusterv1beta2.ManagedClusterSetBinding).Spec.ClusterSet}
}

func (r *Reconciler) bindingsOf(ctx context.Context, set client.Object) []reconcile.Request {
	bindings := &clusterv1beta2.ManagedClusterSetBindingList{}
	if err := r.client.List(ctx, bindings, client.MatchingFields{setIndex: set.GetName()}); err != nil {
		// The list is read from the cache, which fails only while it has not got the bindings yet. Each of them is
		// reconciled when it has.
		ctrl.LoggerFrom(ctx).Error(err, "Listing the bindings of a set", "clusterSet", set.GetName())
		return nil
	}
	requests := make([]reconcile.Request, len(bindings.Items))
	for i := range bindings.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&bindings.Items[i])
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	binding := &clusterv1beta2.ManagedClusterSetBinding{}
	if err := r.client.Get(ctx, request.NamespacedName, binding); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !binding.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	condition := metav1.Condition{
		Type:               clusterv1beta2.ClusterSetBindingBoundType,
		Status:             metav1.ConditionTrue,
		Reason:             reasonClusterSetBound,
		ObservedGeneration: binding.Generation,
	}
	err := r.client.Get(ctx, client.ObjectKey{Name: binding.Spec.ClusterSet}, &clusterv1beta2.ManagedClusterSet{})
	switch {
	case apierrors.IsNotFound(err):
		condition.Status, condition.Reason = metav1.ConditionFalse, reasonClusterSetNotFound
	case err != nil:
		return reconcile.Result{}, err
	}
	before := binding.DeepCopy()
	if !meta.SetStatusCondition(&binding.Status.Conditions, condition) {
		return reconcile.Result{}, nil
	}
	// The lock keeps the conditions of others: a merge patch replaces the whole list.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err = r.client.Status().Patch(ctx, binding, patch)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// Somebody else has changed or deleted the binding. That comes as an event, and with it the next try.
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, err
}
