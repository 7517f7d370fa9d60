// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustersetbinding writes the status of every ManagedClusterSetBinding: the condition Bound, which reports whether the bound set exists.
//
// A binding may be created before its set, and a set may be deleted while it is bound: users of the namespace see that only in this condition. Only
// the existence of a set counts, so changes of sets, such as a status every second, cause no work here.
package clustersetbinding

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/inspect/doctor"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	// The reasons of upstream for the condition Bound. Upstream has no messages.
	reasonClusterSetBound    = "ClusterSetBound"    // the set exists, and is bound
	reasonClusterSetNotFound = "ClusterSetNotFound" // no set of the name exists

	// setIndex finds the bindings of a set.
	setIndex = "spec.clusterSet"
)

// Reconciler reconciles the status of one binding.
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
		Named(name).
		For(binding).
		Watches(&clusterv1beta2.ManagedClusterSet{}, handler.EnqueueRequestsFromMapFunc(r.bindingsOf),
			builder.WithPredicates(kit.Existence())).
		WithOptions(kit.Options(1)).
		Complete(r)
}

func boundSet(obj client.Object) []string {
	return []string{obj.(*clusterv1beta2.ManagedClusterSetBinding).Spec.ClusterSet}
}

func (r *Reconciler) bindingsOf(ctx context.Context, set client.Object) []reconcile.Request {
	return kit.Requests(ctx, r.client, &clusterv1beta2.ManagedClusterSetBindingList{}, client.MatchingFields{setIndex: set.GetName()})
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	binding := &clusterv1beta2.ManagedClusterSetBinding{}
	if err := r.client.Get(ctx, request.NamespacedName, binding); err != nil {
		return reconcile.Result{}, kit.IgnoreGone(err)
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
	case kit.IsGone(err):
		// Upstream has no message here.
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reasonClusterSetNotFound, doctor.SetNotThere(binding.Spec.ClusterSet)
	case err != nil:
		return reconcile.Result{}, err
	}
	_, err = kit.PatchStatus(ctx, r.client, binding, func(b *clusterv1beta2.ManagedClusterSetBinding) {
		meta.SetStatusCondition(&b.Status.Conditions, condition)
	})
	return reconcile.Result{}, kit.IgnoreStale(err)
}
