// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unattendedclusters sets a condition on a Cluster of clusters.openmcp.cloud that no cluster provider has handled. A provider that does not
// run, or was never installed, cannot report that itself, and the users of the Cluster would wait without a reason.
package unattendedclusters

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	// reporter is the name of the controller in events.
	reporter = "unattendedclusters"
	// patience is the time after its creation for which a Cluster may be without a provider. A running provider writes the status within seconds.
	patience = time.Minute

	reasonNotLookedAt = "NotLookedAt" // no provider has handled the Cluster for a minute
)

// Reconciler reconciles one Cluster.
type Reconciler struct {
	client client.Client
	clock  clock.PassiveClock
	// recorder records events about Clusters.
	recorder events.EventRecorder
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller.
func SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(reporter).
		For(&v1alpha1.Cluster{}).
		// ClusterProfiles are only read. The cache has only what a controller watches.
		Watches(&v1alpha1.ClusterProfile{}, handler.Funcs{}).
		WithOptions(kit.Options(1)).
		Complete(&Reconciler{client: mgr.GetClient(), clock: clock.RealClock{}, recorder: mgr.GetEventRecorder(reporter)})
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cluster := &v1alpha1.Cluster{}
	if err := r.client.Get(ctx, request.NamespacedName, cluster); err != nil {
		return reconcile.Result{}, kit.IgnoreGone(err)
	}
	if cluster.Annotations[v1alpha1.OperationAnnotation] == v1alpha1.OperationAnnotationValueIgnore {
		return reconcile.Result{}, nil // the Cluster must be ignored, by its provider too
	}
	// The condition is removed, not set to False: providers consider a Cluster with a condition that is not True as not ready.
	say := func(c *v1alpha1.Cluster) {
		meta.RemoveStatusCondition(&c.Status.Conditions, v1alpha1.ConditionProviderMissing)
	}
	if !attended(cluster) {
		if left := cluster.CreationTimestamp.Add(patience).Sub(r.clock.Now()); left > 0 {
			return reconcile.Result{RequeueAfter: left}, nil
		}
		why, err := r.why(ctx, cluster)
		if err != nil {
			return reconcile.Result{}, err
		}
		say = func(c *v1alpha1.Cluster) {
			meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
				Type: v1alpha1.ConditionProviderMissing, Status: metav1.ConditionTrue, Reason: reasonNotLookedAt, Message: why,
				ObservedGeneration: cluster.Generation,
			})
		}
	}
	changed, err := kit.PatchStatus(ctx, r.client, cluster, say)
	if missing := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionProviderMissing); changed && missing != nil {
		conditionevents.Note(r.recorder, cluster, corev1.EventTypeWarning, v1alpha1.ConditionProviderMissing, "Look", missing.Message)
	}
	return reconcile.Result{}, kit.IgnoreStale(err)
}

// attended reports whether a program other than the hub's own controllers has written the status.
func attended(cluster *v1alpha1.Cluster) bool {
	for _, condition := range cluster.Status.Conditions {
		if condition.Type != v1alpha1.ConditionProviderMissing && condition.Type != v1alpha1.ConditionAccessRequestsDeleted {
			return true
		}
	}
	return cluster.Status.Phase != "" || cluster.Status.ObservedGeneration > 0
}

// why returns the cause, and what to do about it.
func (r *Reconciler) why(ctx context.Context, cluster *v1alpha1.Cluster) (string, error) {
	profile := &v1alpha1.ClusterProfile{}
	err := r.client.Get(ctx, client.ObjectKey{Name: cluster.Spec.Profile}, profile)
	if kit.IsGone(err) {
		return fmt.Sprintf("no cluster provider has handled the Cluster: its ClusterProfile %q no longer exists", cluster.Spec.Profile), nil
	}
	return fmt.Sprintf("no cluster provider has handled the Cluster: check whether the provider %q of its ClusterProfile %q runs",
		profile.Spec.ProviderRef.Name, cluster.Spec.Profile), err
}
