// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// pass is one reconciliation of one ClusterRequest, with what was read for it.
type pass struct {
	*Reconciler
	config *Config
	// definition is the definition of the request's purpose, or nil.
	definition *ClusterDefinition
	request    *v1alpha1.ClusterRequest

	// held is the cluster that the request had before, or nil. cluster is the one that it has for the status.
	held, cluster *v1alpha1.Cluster
}

// errDone ends a reconciliation that has nothing more to do.
var errDone = errors.New("nothing more to do")

// reconcile runs the steps for the state of the request.
func (p *pass) reconcile(ctx context.Context) (reconcile.Result, error) {
	if !p.isSelected() {
		return reconcile.Result{}, nil
	}
	err := p.acknowledge(ctx)
	switch {
	case err != nil:
	case !p.request.DeletionTimestamp.IsZero():
		err = kit.RunSteps(ctx, p.release())
	case !p.request.Status.IsDenied():
		err = p.grant(ctx)
	case p.request.Status.Cluster == nil:
		// The request may have been denied while it was being granted. Its status names a cluster only if it was granted before.
		err = p.releaseDenied(ctx)
	}
	var wait *kit.Outcome
	switch {
	case errors.Is(err, errDone):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		// The object was written in between. The decision is made again, with its current version.
		return reconcile.Result{RequeueAfter: retryInterval}, nil
	case errors.As(err, &wait):
		return reconcile.Result{RequeueAfter: kit.MaxBackoff}, nil
	}
	return reconcile.Result{}, err
}

// isSelected reports whether this scheduler reconciles the request.
func (p *pass) isSelected() bool {
	if p.operation() == v1alpha1.OperationAnnotationValueIgnore {
		return false
	}
	if !p.request.DeletionTimestamp.IsZero() {
		return controllerutil.ContainsFinalizer(p.request, v1alpha1.ClusterRequestFinalizer)
	}
	return p.config.schedules() && p.config.requests.Matches(labels.Set(p.request.Labels))
}

// operation returns what a user requests by an annotation.
func (p *pass) operation() string { return p.request.Annotations[v1alpha1.OperationAnnotation] }

// acknowledge removes the annotation that has caused the reconciliation.
func (p *pass) acknowledge(ctx context.Context) error {
	if p.operation() != v1alpha1.OperationAnnotationValueReconcile {
		return nil
	}
	before := p.request.DeepCopy()
	delete(p.request.Annotations, v1alpha1.OperationAnnotation)
	return p.client.Patch(ctx, p.request, client.MergeFrom(before))
}

// grant gives the request a cluster, and reports the result in its status.
func (p *pass) grant(ctx context.Context) error {
	err := kit.RunSteps(ctx, p.placement())
	condition := metav1.Condition{Type: ConditionGranted, Status: metav1.ConditionFalse}
	var wait *kit.Outcome
	switch {
	case errors.As(err, &wait):
		condition.Reason, condition.Message = wait.Reason, wait.Message
	case apierrors.IsConflict(err):
		return err
	case err != nil:
		condition.Reason, condition.Message = reasonOf(err), err.Error()
	case p.cluster.DeletionTimestamp != nil:
		condition.Status, condition.Reason = metav1.ConditionTrue, reasonClusterBeingDeleted
		condition.Message = fmt.Sprintf("Cluster %s is being deleted, and remains until the request is deleted", client.ObjectKeyFromObject(p.cluster))
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, reasonGranted
		condition.Message = fmt.Sprintf("The request has Cluster %s", client.ObjectKeyFromObject(p.cluster))
	}
	phase := v1alpha1.REQUEST_PENDING
	switch {
	case condition.Status == metav1.ConditionTrue:
		phase = v1alpha1.REQUEST_GRANTED
	case condition.Reason == v1alpha1.ReasonDeniedByPolicy:
		phase, err = v1alpha1.REQUEST_DENIED, nil
	}
	return cmp.Or(p.writeStatus(ctx, phase, condition), err)
}

// reasonOf returns the reason for an error of the API.
func reasonOf(err error) string {
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) {
		return reasonClusterRejected
	}
	return v1alpha1.ReasonPlatformClusterInteractionProblem
}

// addFinalizer adds the finalizer of the request.
func (p *pass) addFinalizer(ctx context.Context) error {
	_, err := kit.Patch(ctx, p.client, p.request, func(r *v1alpha1.ClusterRequest) { controllerutil.AddFinalizer(r, v1alpha1.ClusterRequestFinalizer) })
	return err
}

// writeStatus writes what has changed. The optimistic lock preserves the conditions of others, and a denial that was written concurrently.
func (p *pass) writeStatus(ctx context.Context, phase string, condition metav1.Condition) error {
	before := p.request.Status.Conditions
	condition.ObservedGeneration = p.request.Generation
	changed, err := kit.PatchStatus(ctx, p.client, p.request, func(r *v1alpha1.ClusterRequest) {
		meta.SetStatusCondition(&r.Status.Conditions, condition)
		if p.cluster != nil && r.Status.Cluster == nil {
			r.Status.Cluster = &v1alpha1.ObjectReference{Namespace: p.cluster.Namespace, Name: p.cluster.Name}
		}
		r.Status.Phase, r.Status.ObservedGeneration = phase, r.Generation
	})
	if err != nil || !changed {
		return err
	}
	conditionevents.Record(p.recorder, p.request, before, p.request.Status.Conditions, ConditionGranted, "Schedule")
	return nil
}
