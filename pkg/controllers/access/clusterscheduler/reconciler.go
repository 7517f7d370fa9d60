// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterscheduler grants ClusterRequests: it gives each a Cluster that is there already, or a new one.
//
// That a request has a Cluster is a finalizer on the Cluster, by the UID of the request. This is the truth; the status of the
// request follows it. The finalizer comes in the same write that makes the Cluster, or in one that holds only if the Cluster
// is still as it was when the decision was made. So whatever the process was doing when it ended, the next one finds what the
// request has, and no Cluster is ever given to more requests than may have it.
//
// The scheduler decides from its cache. One request is decided after another, and what has been written is waited for in the
// cache, so that each decision knows those before it.
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
	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
)

const (
	// ConditionGranted of a ClusterRequest tells why it is granted, denied, or still pending.
	ConditionGranted = "Granted"

	// Reasons of the condition, beside those of openMCP.
	reasonGranted             = "ClusterGranted"            // the request has a Cluster
	reasonClusterRejected     = "ClusterRejected"           // a Cluster was made for the request, and the API server refused it; the message says why
	reasonWaitingForDeletion  = "WaitingForClusterDeletion" // the request goes when its Cluster is gone
	reasonClusterBeingDeleted = "ClusterBeingDeleted"       // the Cluster of the request is being deleted

	// retryInterval is when a decision is made again that was overtaken by a change.
	retryInterval = 200 * time.Millisecond
	// cacheTimeout is how long a write may take to come into the cache.
	cacheTimeout = 10 * time.Second
)

// Reconciler brings one ClusterRequest to its answer.
type Reconciler struct {
	client client.Client
	// live reads past the cache.
	live   client.Reader
	config func() *Config
	// recorder tells people what becomes of requests.
	recorder events.EventRecorder
	// pick chooses one of n.
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
	var wait *kit.Problem
	switch {
	case apierrors.IsConflict(err):
		// It was written in between. The decision is made again, by what is there now.
		return reconcile.Result{RequeueAfter: retryInterval}, nil
	case errors.As(err, &wait):
		return reconcile.Result{RequeueAfter: kit.LongestBackoff}, nil
	}
	return reconcile.Result{}, err
}

// grant gives the request a cluster, unless it is denied, and tells so in its status.
func (r *Reconciler) grant(ctx context.Context, config *Config, request *v1alpha1.ClusterRequest) error {
	if request.Status.IsDenied() {
		// It may have been denied while it was about to be granted. It keeps a cluster only if its status names the cluster.
		if request.Status.Cluster == nil {
			return r.giveUp(ctx, request)
		}
		return nil
	}
	cluster, err := r.provide(ctx, config, request)
	condition := metav1.Condition{Type: ConditionGranted, Status: metav1.ConditionFalse}
	var wait *kit.Problem
	switch {
	case errors.As(err, &wait):
		condition.Reason, condition.Message = wait.Reason, wait.Message
	case apierrors.IsConflict(err):
		return err
	case err != nil:
		condition.Reason, condition.Message = reasonOf(err), err.Error()
	case cluster.DeletionTimestamp != nil:
		condition.Status, condition.Reason = metav1.ConditionTrue, reasonClusterBeingDeleted
		condition.Message = fmt.Sprintf("Cluster %s is being deleted, and stays until the request is deleted", client.ObjectKeyFromObject(cluster))
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

// reasonOf is the reason of an error that comes from the API.
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
		return nil, kit.Problemf(v1alpha1.ReasonConfigurationProblem, "no cluster definition found for purpose '%s'", request.Spec.Purpose)
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

// ask asks the policy.
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
		return kit.Problemf(v1alpha1.ReasonConfigurationProblem, "%v", err)
	case !allowed:
		return kit.Problemf(v1alpha1.ReasonDeniedByPolicy, "no rule of the policy allows requests in namespace %s the purpose '%s'",
			request.Namespace, request.Spec.Purpose)
	}
	return nil
}

// writeFinalizer adds the finalizer of the request, or removes it.
func (r *Reconciler) writeFinalizer(ctx context.Context, request *v1alpha1.ClusterRequest, change func(client.Object, string) bool) error {
	_, err := kit.Patch(ctx, r.client, request, func(r *v1alpha1.ClusterRequest) { change(r, v1alpha1.ClusterRequestFinalizer) })
	return err
}

// writeStatus writes what has changed. The optimistic lock keeps the conditions of others, and a denial that was written
// meanwhile.
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
