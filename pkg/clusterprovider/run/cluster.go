// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/leftovers"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/target"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
)

// closeAllTimeout is how long it may take to take back all access to one. Nobody is given any meanwhile.
const closeAllTimeout = 5 * time.Minute

// clusters keeps the Clusters of the provider's profiles.
type clusters struct {
	hub.Identity
	provider  clusterprovider.Provider
	client    client.Client
	events    events.EventRecorder
	leftovers *leftovers.Leftovers
	giving    *giving
}

func (r *clusters) setup(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("cluster").
		For(&v1alpha1.Cluster{}, builder.WithPredicates(notOnlyStatus)).
		Watches(&v1alpha1.ClusterProfile{}, handler.EnqueueRequestsFromMapFunc(r.ofProfile)).
		Watches(&v1alpha1.AccessRequest{}, handler.EnqueueRequestsFromMapFunc(r.leftovers.Vanished), builder.WithPredicates(deleted)).
		WatchesRawSource(watch(r.provider, mgr.GetAPIReader())).
		WithOptions(controllerOptions(workers)).
		Complete(r)
}

// deleted lets pass what is gone.
var deleted = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	UpdateFunc:  func(event.UpdateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// notOnlyStatus lets pass what is not merely a new status.
var notOnlyStatus = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld, e.ObjectNew
	return before.GetGeneration() != after.GetGeneration() ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
		!slices.Equal(before.GetFinalizers(), after.GetFinalizers()) ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}}

func (r *clusters) ofProfile(ctx context.Context, profile client.Object) (requests []reconcile.Request) {
	list := &v1alpha1.ClusterList{}
	if err := r.client.List(ctx, list, client.MatchingFields{hub.ByProfile: profile.GetName()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Clusters of a profile", "profile", profile.GetName())
	}
	for _, cluster := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&cluster)})
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (r *clusters) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
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
		if err := hub.EndOperation(ctx, r.client, cluster); err != nil {
			return hub.Settle(err)
		}
	}
	if cluster.DeletionTimestamp.IsZero() {
		return r.ensure(ctx, cluster, profile)
	}
	return r.remove(ctx, cluster, profile)
}

// profileOf is the profile of a Cluster, and whether the provider is responsible for it. A profile that is gone was ours if
// we have begun with the Cluster.
func (r *clusters) profileOf(ctx context.Context, cluster *v1alpha1.Cluster) (clusterprovider.Profile, bool, error) {
	profile := &v1alpha1.ClusterProfile{}
	err := r.client.Get(ctx, types.NamespacedName{Name: cluster.Spec.Profile}, profile)
	if apierrors.IsNotFound(err) {
		config, named := strings.CutPrefix(cluster.Spec.Profile, r.ProfileName(""))
		return clusterprovider.Profile{Config: config}, named && controllerutil.ContainsFinalizer(cluster, r.ClusterFinalizer()), nil
	}
	return clusterprovider.Profile{Config: profile.Spec.ProviderConfigRef.Name, Versions: profile.Spec.SupportedVersions}, r.Responsible(profile), err
}

// ensure brings a cluster to what its object says.
func (r *clusters) ensure(ctx context.Context, cluster *v1alpha1.Cluster, profile clusterprovider.Profile) (reconcile.Result, error) {
	if err := hub.Patch(ctx, r.client, cluster, func() { controllerutil.AddFinalizer(cluster, r.ClusterFinalizer()) }); err != nil {
		return hub.Settle(err)
	}
	state, failure := r.provider.Ensure(ctx, cluster.DeepCopy(), profile)
	if failure == nil {
		if err := hub.Patch(ctx, r.client, cluster, func() { r.describe(cluster, state) }); err != nil {
			return hub.Settle(err)
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
				return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("the provider's status: %w", err))
			}
		}
	}
	for _, condition := range state.Conditions {
		hub.SetCondition(&cluster.Status.Status, cluster.Generation, condition)
	}
	if err := r.report(ctx, before, cluster, readiness(state, failure)); err != nil {
		return hub.Settle(err)
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
		r.leftovers.Look(ctx, cluster)
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
	condition := metav1.Condition{Type: clusterprovider.ConditionReady, Status: metav1.ConditionTrue, Message: "the cluster can be used"}
	switch {
	case failure != nil:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, hub.ReasonProviderError, failure.Error()
	case !state.Ready:
		condition.Status, condition.Reason = metav1.ConditionFalse, hub.ReasonProgressing
		condition.Message = cmp.Or(state.Info, "the provider is at work")
		for _, why := range state.Conditions {
			if why.Status != metav1.ConditionTrue { // an event tells of the reason
				condition.Reason = cmp.Or(why.Reason, hub.ReasonProgressing)
				break
			}
		}
	}
	return condition
}

// describe sets the labels and the annotation of a Cluster.
func (r *clusters) describe(cluster *v1alpha1.Cluster, state clusterprovider.State) {
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

// remove removes a cluster once nobody else holds its object.
func (r *clusters) remove(ctx context.Context, cluster *v1alpha1.Cluster, profile clusterprovider.Profile) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(cluster, r.ClusterFinalizer()) {
		return reconcile.Result{}, nil
	}
	before := cluster.DeepCopy()
	foreign := slices.DeleteFunc(slices.Clone(cluster.Finalizers), func(f string) bool { return f == r.ClusterFinalizer() })
	if len(foreign) > 0 {
		hub.SetCondition(&cluster.Status.Status, cluster.Generation, metav1.Condition{
			Type: clusterprovider.ConditionForeignFinalizers, Status: metav1.ConditionFalse, Reason: hub.ReasonWaitingForDeletion,
			Message: "waiting until others remove their finalizers: " + strings.Join(foreign, ", "),
		})
		err := r.report(ctx, before, cluster, metav1.Condition{
			Type: clusterprovider.ConditionReady, Status: metav1.ConditionFalse, Reason: hub.ReasonWaitingForDeletion, Message: "the cluster will be removed",
		})
		return hub.Settle(err)
	}
	ended, ok := r.giving.end(cluster.UID)
	if !ok {
		return reconcile.Result{RequeueAfter: hub.RetryInterval}, nil
	}
	defer ended()
	closing, cancel := context.WithTimeout(ctx, closeAllTimeout)
	defer cancel()
	if err := r.closeAccess(closing, cluster); err != nil {
		ctrl.LoggerFrom(ctx).Info("Access that was given to the cluster cannot be taken back", "reason", err.Error())
	}
	r.leftovers.LastLook(ctx, cluster)
	gone, failure := r.provider.Remove(ctx, cluster.DeepCopy(), profile)
	if gone && failure == nil {
		err := hub.Patch(ctx, r.client, cluster, func() { controllerutil.RemoveFinalizer(cluster, r.ClusterFinalizer()) })
		if err == nil {
			r.leftovers.Forget(cluster)
			r.giving.locks.Delete(cluster.UID)
		}
		return hub.Settle(err)
	}
	hub.SetCondition(&cluster.Status.Status, cluster.Generation, metav1.Condition{
		Type: clusterprovider.ConditionForeignFinalizers, Status: metav1.ConditionTrue, Message: "nobody else holds the Cluster",
	})
	ready := metav1.Condition{
		Type: clusterprovider.ConditionReady, Status: metav1.ConditionFalse, Reason: hub.ReasonRemoving, Message: "the cluster is being removed",
	}
	if failure != nil {
		ready.Reason, ready.Message = hub.ReasonProviderError, failure.Error()
	}
	if err := r.report(ctx, before, cluster, ready); err != nil {
		return hub.Settle(err)
	}
	if failure != nil {
		return reconcile.Result{}, failure
	}
	return reconcile.Result{RequeueAfter: hub.RetryInterval}, nil
}

// closeAccess takes back the access that is left to a cluster whose object was deleted before its AccessRequests were: the
// cluster may live on, and nobody could do it later.
func (r *clusters) closeAccess(ctx context.Context, cluster *v1alpha1.Cluster) error {
	list := &v1alpha1.AccessRequestList{}
	if err := r.client.List(ctx, list, client.MatchingFields{hub.ByCluster: client.ObjectKeyFromObject(cluster).String()}); err != nil {
		return err
	}
	for _, ar := range list.Items {
		if !controllerutil.ContainsFinalizer(&ar, r.AccessFinalizer()) {
			continue
		}
		config, err := r.provider.Connect(ctx, cluster)
		if err != nil {
			return err
		}
		config = rest.CopyConfig(config)
		config.Timeout = target.CloseTimeout
		t, err := target.New(config, r.AccessLabels(&ar), nil)
		if err != nil {
			return err
		}
		if _, err := t.Cleanup(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// report writes the status.
func (r *clusters) report(ctx context.Context, before, cluster *v1alpha1.Cluster, ready metav1.Condition) error {
	hub.SetCondition(&cluster.Status.Status, cluster.Generation, ready)
	cluster.Status.ObservedGeneration = cluster.Generation
	cluster.Status.Phase = clusterPhase(cluster)
	if err := hub.PatchStatus(ctx, r.client, before, cluster); err != nil {
		return err
	}
	conditionevents.Record(r.events, cluster, before.Status.Conditions, cluster.Status.Conditions, clusterprovider.ConditionReady, "Provide")
	return nil
}

// clusterPhase is what the conditions of a Cluster come to.
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
