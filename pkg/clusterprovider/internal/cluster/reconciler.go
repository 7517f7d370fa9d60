// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster reconciles the Clusters of a provider.
package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/access"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
)

// closeAllTimeout is the maximum time to revoke all access to a cluster. No access to it is granted during that time.
const closeAllTimeout = 5 * time.Minute

// Reconciler reconciles the Clusters of the provider's profiles.
type Reconciler struct {
	hub.Identity
	provider clusterprovider.Provider
	client   client.Client
	events   events.EventRecorder
	// access manages the access to the clusters.
	access *access.Reconciler
}

// New returns a reconciler of the Clusters of a hub.
func New(
	own hub.Identity, provider clusterprovider.Provider, c client.Client, recorder events.EventRecorder, given *access.Reconciler,
) *Reconciler {
	return &Reconciler{Identity: own, provider: provider, client: c, events: recorder, access: given}
}

// Setup sets up the controller of the Clusters of a hub.
func (r *Reconciler) Setup(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("cluster").
		For(&v1alpha1.Cluster{}, builder.WithPredicates(notOnlyStatus)).
		Watches(&v1alpha1.ClusterProfile{}, handler.EnqueueRequestsFromMapFunc(r.ofProfile)).
		Watches(&v1alpha1.AccessRequest{}, handler.EnqueueRequestsFromMapFunc(r.access.Leftovers.Vanished), builder.WithPredicates(deleted)).
		WatchesRawSource(watch(r.provider, mgr.GetAPIReader())).
		WithOptions(options).
		Complete(r)
}

// deleted selects deletions.
var deleted = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	UpdateFunc:  func(event.UpdateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// notOnlyStatus selects changes other than those of the status.
var notOnlyStatus = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld, e.ObjectNew
	return before.GetGeneration() != after.GetGeneration() ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
		!slices.Equal(before.GetFinalizers(), after.GetFinalizers()) ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}}

func (r *Reconciler) ofProfile(ctx context.Context, profile client.Object) (requests []reconcile.Request) {
	list := &v1alpha1.ClusterList{}
	if err := r.client.List(ctx, list, client.MatchingFields{hub.ByProfile: profile.GetName()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the Clusters of a profile failed", "profile", profile.GetName())
	}
	for _, cluster := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&cluster)})
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cluster := &v1alpha1.Cluster{}
	if err := r.client.Get(ctx, request.NamespacedName, cluster); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	profile, ours, err := r.profileOf(ctx, cluster)
	if err != nil || !ours {
		return reconcile.Result{}, err
	}
	switch hub.Operation(cluster) {
	case v1alpha1.OperationAnnotationValueIgnore:
		return r.withdrawIgnored(ctx, cluster, profile)
	case v1alpha1.OperationAnnotationValueReconcile:
		if err := hub.RemoveOperation(ctx, r.client, cluster); err != nil {
			return hub.ResultOf(err)
		}
	}
	if cluster.DeletionTimestamp.IsZero() {
		return r.ensure(ctx, cluster, profile)
	}
	return r.remove(ctx, cluster, profile)
}

// profileOf returns the profile of a Cluster, and reports whether the provider is responsible for it. A deleted profile was ours if the Cluster has
// our finalizer.
func (r *Reconciler) profileOf(ctx context.Context, cluster *v1alpha1.Cluster) (clusterprovider.Profile, bool, error) {
	profile := &v1alpha1.ClusterProfile{}
	err := r.client.Get(ctx, types.NamespacedName{Name: cluster.Spec.Profile}, profile)
	if apierrors.IsNotFound(err) {
		config, named := strings.CutPrefix(cluster.Spec.Profile, r.ProfileName(""))
		return clusterprovider.Profile{Config: config}, named && controllerutil.ContainsFinalizer(cluster, r.ClusterFinalizer()), nil
	}
	return clusterprovider.Profile{Config: profile.Spec.ProviderConfigRef.Name, Versions: profile.Spec.SupportedVersions}, r.Responsible(profile), err
}

// ensure reconciles a cluster with its object.
func (r *Reconciler) ensure(ctx context.Context, cluster *v1alpha1.Cluster, profile clusterprovider.Profile) (reconcile.Result, error) {
	if err := hub.Patch(ctx, r.client, cluster, func() { controllerutil.AddFinalizer(cluster, r.ClusterFinalizer()) }); err != nil {
		return hub.ResultOf(err)
	}
	state, failure := r.provider.Ensure(ctx, cluster.DeepCopy(), profile)
	if failure == nil {
		if err := hub.Patch(ctx, r.client, cluster, func() { r.describe(cluster, state) }); err != nil {
			return hub.ResultOf(err)
		}
	}
	before := cluster.DeepCopy()
	if failure == nil {
		if len(state.Endpoints) > 0 {
			cluster.Status.Endpoints = state.Endpoints
			cluster.Status.APIServer, _ = state.Endpoints.Get(v1alpha1.APISERVER_ENDPOINT_EXTERNAL)
		}
		if state.ProviderStatus != nil {
			if err := cluster.Status.SetProviderStatus(state.ProviderStatus); err != nil {
				return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("encoding the provider's status: %w", err))
			}
		}
	}
	for _, condition := range state.Conditions {
		hub.SetCondition(&cluster.Status.Status, cluster.Generation, condition)
	}
	if err := r.report(ctx, before, cluster, readiness(state, failure)); err != nil {
		return hub.ResultOf(err)
	}
	if failure != nil {
		return reconcile.Result{}, failure
	}
	if state.Withdrawn {
		return r.withdraw(ctx, cluster, state)
	}
	if state.Former != "" {
		former := cluster.DeepCopy()
		former.UID = state.Former
		return r.withdraw(ctx, former, state)
	}
	if state.Ready {
		r.access.Leftovers.Search(ctx, cluster)
	}
	return reconcile.Result{RequeueAfter: retryAfter(state)}, nil
}

func retryAfter(state clusterprovider.State) time.Duration {
	switch {
	case state.RetryAfter > 0:
		return state.RetryAfter
	case state.Ready:
		return clusterprovider.ResyncInterval
	}
	return hub.RetryInterval
}

func readiness(state clusterprovider.State, failure error) metav1.Condition {
	condition := metav1.Condition{Type: clusterprovider.ConditionReady, Status: metav1.ConditionTrue, Message: "the cluster is ready"}
	switch {
	case failure != nil:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, hub.ReasonProviderError, failure.Error()
	case !state.Ready:
		condition.Status, condition.Reason = metav1.ConditionFalse, hub.ReasonProgressing
		condition.Message = cmp.Or(state.Info, "the provider is reconciling the cluster")
		for _, why := range state.Conditions {
			if why.Status != metav1.ConditionTrue { // an event reports the reason
				condition.Reason = cmp.Or(why.Reason, hub.ReasonProgressing)
				break
			}
		}
	}
	return condition
}

// describe sets the labels and the annotation of a Cluster.
func (r *Reconciler) describe(cluster *v1alpha1.Cluster, state clusterprovider.State) {
	if cluster.Labels == nil {
		cluster.Labels = map[string]string{}
	}
	cluster.Labels[v1alpha1.ProviderLabel] = r.Name
	if version := hub.VersionLabel(state.Version); version != "" {
		cluster.Labels[v1alpha1.K8sVersionLabel] = version
	}
	if state.Info == "" {
		delete(cluster.Annotations, v1alpha1.ProviderInfoAnnotation)
		return
	}
	if cluster.Annotations == nil {
		cluster.Annotations = map[string]string{}
	}
	cluster.Annotations[v1alpha1.ProviderInfoAnnotation] = state.Info
}

// remove deletes a cluster once its object has no finalizers of others.
func (r *Reconciler) remove(ctx context.Context, cluster *v1alpha1.Cluster, profile clusterprovider.Profile) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(cluster, r.ClusterFinalizer()) {
		return reconcile.Result{}, nil
	}
	before := cluster.DeepCopy()
	foreign := slices.DeleteFunc(slices.Clone(cluster.Finalizers), func(f string) bool { return f == r.ClusterFinalizer() })
	if len(foreign) > 0 {
		hub.SetCondition(&cluster.Status.Status, cluster.Generation, metav1.Condition{
			Type: clusterprovider.ConditionForeignFinalizers, Status: metav1.ConditionFalse, Reason: hub.ReasonWaitingForDeletion,
			Message: "waiting for other controllers to remove their finalizers: " + strings.Join(foreign, ", "),
		})
		err := r.report(ctx, before, cluster, metav1.Condition{
			Type: clusterprovider.ConditionReady, Status: metav1.ConditionFalse, Reason: hub.ReasonWaitingForDeletion, Message: "the cluster will be deleted",
		})
		return hub.ResultOf(err)
	}
	ended, ok := r.access.Giving.End(cluster.UID)
	if !ok {
		return reconcile.Result{RequeueAfter: hub.RetryInterval}, nil
	}
	defer ended()
	closing, cancel := context.WithTimeout(ctx, closeAllTimeout)
	defer cancel()
	if err := r.access.RevokeDeleted(closing, cluster); err != nil {
		ctrl.LoggerFrom(ctx).Info("Revoking the access to the cluster failed", "reason", err.Error())
	}
	r.access.Leftovers.SearchLast(ctx, cluster)
	gone, failure := r.provider.Remove(ctx, cluster.DeepCopy(), profile)
	if gone && failure == nil {
		err := hub.Patch(ctx, r.client, cluster, func() { controllerutil.RemoveFinalizer(cluster, r.ClusterFinalizer()) })
		if err == nil {
			r.access.Forget(cluster)
		}
		return hub.ResultOf(err)
	}
	hub.SetCondition(&cluster.Status.Status, cluster.Generation, metav1.Condition{
		Type: clusterprovider.ConditionForeignFinalizers, Status: metav1.ConditionTrue, Message: "the Cluster has no finalizers of other controllers",
	})
	ready := metav1.Condition{
		Type: clusterprovider.ConditionReady, Status: metav1.ConditionFalse, Reason: hub.ReasonRemoving, Message: "the cluster is being deleted",
	}
	if failure != nil {
		ready.Reason, ready.Message = hub.ReasonProviderError, failure.Error()
	}
	if err := r.report(ctx, before, cluster, ready); err != nil {
		return hub.ResultOf(err)
	}
	if failure != nil {
		return reconcile.Result{}, failure
	}
	return reconcile.Result{RequeueAfter: hub.RetryInterval}, nil
}

// report writes the status.
func (r *Reconciler) report(ctx context.Context, before, cluster *v1alpha1.Cluster, ready metav1.Condition) error {
	hub.SetCondition(&cluster.Status.Status, cluster.Generation, ready)
	cluster.Status.ObservedGeneration = cluster.Generation
	cluster.Status.Phase = clusterPhase(cluster)
	if err := hub.PatchStatus(ctx, r.client, before, cluster); err != nil {
		return err
	}
	conditionevents.Record(r.events, cluster, before.Status.Conditions, cluster.Status.Conditions, clusterprovider.ConditionReady, "Provide")
	return nil
}

// clusterPhase returns the phase that follows from the conditions of a Cluster.
func clusterPhase(cluster *v1alpha1.Cluster) string {
	if !cluster.DeletionTimestamp.IsZero() {
		return v1alpha1.StatusPhaseTerminating
	}
	for _, condition := range cluster.Status.Conditions {
		if condition.Status != metav1.ConditionTrue {
			return v1alpha1.StatusPhaseProgressing
		}
	}
	return v1alpha1.StatusPhaseReady
}
