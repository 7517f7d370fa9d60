// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterscheduler grants ClusterRequests: it gives each an existing Cluster, or a new one.
//
// A request has a Cluster if the Cluster has a finalizer with the UID of the request. This is the source of truth; the status of the request
// follows it. The finalizer is added by the write that creates the Cluster, or by one that is conditional on the version on which the decision was
// based. So whenever a process ends, the next one finds what the request has, and no Cluster is ever given to more requests than may have it.
//
// The scheduler decides from its cache. It decides on one request after another, and waits until the cache has what was written, so that each
// decision is based on those before it.
package clusterscheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/accesspolicy"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	// ConditionGranted of a ClusterRequest has the reason why it is granted, denied, or still pending.
	ConditionGranted = "Granted"

	// Reasons of the condition, in addition to those of openMCP.
	reasonGranted             = "ClusterGranted"            // the request has a Cluster
	reasonClusterRejected     = "ClusterRejected"           // the API server refused the Cluster that was created for the request; the message says why
	reasonWaitingForDeletion  = "WaitingForClusterDeletion" // the request is deleted when its Cluster is gone
	reasonClusterBeingDeleted = "ClusterBeingDeleted"       // the Cluster of the request is being deleted

	// retryInterval is the delay until a decision is made again after a conflict.
	retryInterval = 200 * time.Millisecond
	// cacheTimeout is the maximum time until a write is in the cache.
	cacheTimeout = 10 * time.Second
)

// Reconciler reconciles one ClusterRequest.
type Reconciler struct {
	client client.Client
	// live does not read from the cache.
	live   client.Reader
	config func() *Config
	// recorder records events about requests.
	recorder events.EventRecorder
	// pick returns a number below n.
	pick func(n int) int
}

var _ reconcile.Reconciler = &Reconciler{}

func newReconciler(c client.Client, live client.Reader, config func() *Config, recorder events.EventRecorder) *Reconciler {
	return &Reconciler{client: c, live: live, config: config, recorder: recorder, pick: rand.IntN}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	request := &v1alpha1.ClusterRequest{}
	if err := r.client.Get(ctx, req.NamespacedName, request); err != nil {
		return reconcile.Result{}, kit.IgnoreGone(err)
	}
	config := r.config()
	deleted := !request.DeletionTimestamp.IsZero()
	mine := config.schedules() && config.requests.Matches(labels.Set(request.Labels))
	if deleted {
		mine = controllerutil.ContainsFinalizer(request, v1alpha1.ClusterRequestFinalizer)
	}
	operation := request.Annotations[v1alpha1.OperationAnnotation]
	if !mine || operation == v1alpha1.OperationAnnotationValueIgnore {
		return reconcile.Result{}, nil
	}
	var err error
	if operation == v1alpha1.OperationAnnotationValueReconcile {
		before := request.DeepCopy()
		delete(request.Annotations, v1alpha1.OperationAnnotation)
		err = r.client.Patch(ctx, request, client.MergeFrom(before))
	}
	if err == nil && deleted {
		err = r.release(ctx, request)
	} else if err == nil {
		err = r.grant(ctx, config, request)
	}
	var wait *kit.Outcome
	switch {
	case apierrors.IsConflict(err):
		// The object was written in between. The decision is made again, with its current version.
		return reconcile.Result{RequeueAfter: retryInterval}, nil
	case errors.As(err, &wait):
		return reconcile.Result{RequeueAfter: kit.MaxBackoff}, nil
	}
	return reconcile.Result{}, err
}

// grant gives the request a cluster, unless it is denied, and reports the result in its status.
func (r *Reconciler) grant(ctx context.Context, config *Config, request *v1alpha1.ClusterRequest) error {
	if request.Status.IsDenied() {
		// The request may have been denied while it was being granted. It keeps a cluster only if its status names the cluster.
		if request.Status.Cluster == nil {
			return r.giveUp(ctx, request)
		}
		return nil
	}
	cluster, err := r.provide(ctx, config, request)
	condition := metav1.Condition{Type: ConditionGranted, Status: metav1.ConditionFalse}
	var wait *kit.Outcome
	switch {
	case errors.As(err, &wait):
		condition.Reason, condition.Message = wait.Reason, wait.Message
	case apierrors.IsConflict(err):
		return err
	case err != nil:
		condition.Reason, condition.Message = reasonOf(err), err.Error()
	case cluster.DeletionTimestamp != nil:
		condition.Status, condition.Reason = metav1.ConditionTrue, reasonClusterBeingDeleted
		condition.Message = fmt.Sprintf("Cluster %s is being deleted, and remains until the request is deleted", client.ObjectKeyFromObject(cluster))
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, reasonGranted
		condition.Message = fmt.Sprintf("The request has Cluster %s", client.ObjectKeyFromObject(cluster))
	}
	phase := v1alpha1.REQUEST_PENDING
	switch {
	case condition.Status == metav1.ConditionTrue:
		phase = v1alpha1.REQUEST_GRANTED
	case condition.Reason == v1alpha1.ReasonDeniedByPolicy:
		phase, err = v1alpha1.REQUEST_DENIED, nil
	}
	return cmp.Or(r.writeStatus(ctx, request, phase, condition, cluster), err)
}

// reasonOf returns the reason for an error of the API.
func reasonOf(err error) string {
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) {
		return reasonClusterRejected
	}
	return v1alpha1.ReasonPlatformClusterInteractionProblem
}

// provide returns the cluster that the request has, and gives it one if it has none.
func (r *Reconciler) provide(ctx context.Context, config *Config, request *v1alpha1.ClusterRequest) (*v1alpha1.Cluster, error) {
	definition := config.PurposeMappings[request.Spec.Purpose]
	cluster, err := r.held(ctx, definition, request)
	if err != nil {
		return nil, err
	}
	if cluster == nil && definition == nil {
		return nil, kit.Outcomef(v1alpha1.ReasonConfigurationProblem, "no cluster definition found for purpose '%s'", request.Spec.Purpose)
	}
	if cluster == nil && request.Status.Cluster == nil {
		if err := r.ask(ctx, config.policy, request); err != nil {
			return nil, err
		}
	}
	if err := r.writeFinalizer(ctx, request, controllerutil.AddFinalizer); err != nil {
		return nil, err
	}
	switch {
	case cluster != nil:
		return cluster, r.propagate(ctx, request, cluster)
	case request.Status.Cluster != nil:
		return r.create(ctx, definition, request, request.Status.Cluster)
	}
	if definition.Template.Spec.Tenancy == v1alpha1.TENANCY_SHARED {
		shared, err := r.choose(ctx, config, definition, request)
		if err != nil {
			return nil, err
		}
		if shared != nil {
			return shared, r.take(ctx, request, shared)
		}
	}
	return r.create(ctx, definition, request, nil)
}

// ask checks the policy.
func (r *Reconciler) ask(ctx context.Context, policy *accesspolicy.Policy, request *v1alpha1.ClusterRequest) error {
	if !policy.RestrictsClusterRequests() {
		return nil
	}
	namespace := &corev1.Namespace{}
	if err := r.live.Get(ctx, client.ObjectKey{Name: request.Namespace}, namespace); err != nil {
		return err
	}
	switch allowed, err := policy.ClusterRequestAllowed(ctx, request, namespace); {
	case err != nil:
		return kit.Outcomef(v1alpha1.ReasonConfigurationProblem, "%v", err)
	case !allowed:
		return kit.Outcomef(v1alpha1.ReasonDeniedByPolicy, "no rule of the policy allows requests in namespace %s the purpose '%s'",
			request.Namespace, request.Spec.Purpose)
	}
	return nil
}

// writeFinalizer adds the finalizer of the request, or removes it.
func (r *Reconciler) writeFinalizer(ctx context.Context, request *v1alpha1.ClusterRequest, change func(client.Object, string) bool) error {
	_, err := kit.Patch(ctx, r.client, request, func(r *v1alpha1.ClusterRequest) { change(r, v1alpha1.ClusterRequestFinalizer) })
	return err
}

// writeStatus writes what has changed. The optimistic lock preserves the conditions of others, and a denial that was written concurrently.
func (r *Reconciler) writeStatus(
	ctx context.Context, request *v1alpha1.ClusterRequest, phase string, condition metav1.Condition, cluster *v1alpha1.Cluster,
) error {
	before := request.Status.Conditions
	condition.ObservedGeneration = request.Generation
	changed, err := kit.PatchStatus(ctx, r.client, request, func(r *v1alpha1.ClusterRequest) {
		meta.SetStatusCondition(&r.Status.Conditions, condition)
		if cluster != nil && r.Status.Cluster == nil {
			r.Status.Cluster = &v1alpha1.ObjectReference{Namespace: cluster.Namespace, Name: cluster.Name}
		}
		r.Status.Phase, r.Status.ObservedGeneration = phase, r.Generation
	})
	if err != nil || !changed {
		return err
	}
	conditionevents.Record(r.recorder, request, before, request.Status.Conditions, ConditionGranted, "Schedule")
	return nil
}
