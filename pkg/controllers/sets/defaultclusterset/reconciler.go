// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package defaultclusterset reconciles the sets "default" and "global" of every hub: "default" has the clusters that are in no other set by label,
// "global" has all.
//
// A missing set is created, and a changed selector is reverted. Labels, annotations and managedNamespaces belong to the users. The annotation
// AutoUpdateAnnotation allows another selector.
package defaultclusterset

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	// AutoUpdateAnnotation with the value "false" preserves a set as its users have changed it.
	AutoUpdateAnnotation = "cluster.open-cluster-management.io/autoupdate"
)

// Reconciler reconciles the sets.
type Reconciler struct {
	client client.Client
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller.
func SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&clusterv1beta2.ManagedClusterSet{}, builder.WithPredicates(predicate.NewPredicateFuncs(kept))).
		// No event reports that a set has been missing from the beginning.
		WatchesRawSource(source.Func(requestAll)).
		WithOptions(kit.Options(1)).
		Complete(&Reconciler{client: mgr.GetClient()})
}

func kept(set client.Object) bool {
	_, ok := selectorOf(set.GetName())
	return ok
}

func requestAll(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	for _, name := range []string{cluster.DefaultSet, cluster.GlobalSet} {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	return nil
}

// selectorOf returns the selector of a set. ok is false for sets that are not reconciled.
func selectorOf(name string) (selector clusterv1beta2.ManagedClusterSelector, ok bool) {
	switch name {
	case cluster.DefaultSet:
		return clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel}, true
	case cluster.GlobalSet:
		// An empty selector selects everything; a nil one would select nothing.
		return clusterv1beta2.ManagedClusterSelector{
			SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
		}, true
	}
	return clusterv1beta2.ManagedClusterSelector{}, false
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	wanted, ok := selectorOf(request.Name)
	if !ok {
		return reconcile.Result{}, nil
	}
	set := &clusterv1beta2.ManagedClusterSet{}
	err := r.client.Get(ctx, request.NamespacedName, set)
	switch {
	case kit.IsGone(err):
		return reconcile.Result{}, r.create(ctx, request.Name, wanted)
	case err != nil:
		return reconcile.Result{}, err
	}
	if !set.DeletionTimestamp.IsZero() || set.Annotations[AutoUpdateAnnotation] == "false" {
		return reconcile.Result{}, nil
	}
	// A user who sets the annotation together with a selector keeps both: a concurrent change of the set is a conflict.
	changed, err := kit.Patch(ctx, r.client, set, func(s *clusterv1beta2.ManagedClusterSet) { s.Spec.ClusterSelector = wanted })
	if err != nil {
		// Conflicts are retried, too: another set may hold the label of "default" until it is deleted.
		return reconcile.Result{}, fmt.Errorf("resetting the selector of set %q: %w", request.Name, err)
	}
	if changed {
		ctrl.LoggerFrom(ctx).Info("Reset the selector of a set", "clusterSet", request.Name)
	}
	return reconcile.Result{}, nil
}

func (r *Reconciler) create(ctx context.Context, name string, selector clusterv1beta2.ManagedClusterSelector) error {
	err := r.client.Create(ctx, &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: selector},
	})
	if err != nil {
		return fmt.Errorf("creating set %q: %w", name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Created a set", "clusterSet", name)
	return nil
}
