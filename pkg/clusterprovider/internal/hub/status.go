// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// RetryInterval is the interval between calls of a provider for a cluster that is not ready, or not gone, unless the provider returns another one.
const RetryInterval = 2 * time.Second

// conflictInterval is the delay before an object is reconciled again after a conflict, so that the caches have the change.
const conflictInterval = 100 * time.Millisecond

// MaxMessage is the maximum length of a condition's message in the API.
const MaxMessage = 32768

var illegalInReason = regexp.MustCompile(`[^A-Za-z0-9_,:]|^[^A-Za-z]|[,:]$`)

// SetCondition sets a condition among others.
func SetCondition(status *v1alpha1.Status, generation int64, condition metav1.Condition) {
	if condition.Reason == "" {
		condition.Reason = condition.Type + "_" + string(condition.Status)
	}
	condition.Reason = illegalInReason.ReplaceAllString(condition.Reason, "_")
	if len(condition.Message) > MaxMessage {
		condition.Message = strings.ToValidUTF8(condition.Message[:MaxMessage], "")
	}
	condition.ObservedGeneration = generation
	meta.SetStatusCondition(&status.Conditions, condition)
}

// Operation returns the operation that the annotation of an object requests.
func Operation(object client.Object) string {
	return object.GetAnnotations()[v1alpha1.OperationAnnotation]
}

// RemoveOperation removes the annotation that requests a reconciliation.
func RemoveOperation(ctx context.Context, c client.Client, object client.Object) error {
	return Patch(ctx, c, object, func() {
		annotations := object.GetAnnotations()
		delete(annotations, v1alpha1.OperationAnnotation)
		object.SetAnnotations(annotations)
	})
}

// Patch patches an object with the changes that mutate makes, if any. It fails if the object changed since it was read, since lists, such as
// finalizers, are replaced.
func Patch(ctx context.Context, c client.Client, object client.Object, mutate func()) error {
	before := object.DeepCopyObject().(client.Object)
	mutate()
	if equality.Semantic.DeepEqual(before, object) {
		return nil
	}
	return c.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// PatchStatus does the same with its status.
func PatchStatus(ctx context.Context, c client.Client, before, after client.Object) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	return c.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// ResultOf returns the result of a reconcile whose write failed. That the object changed or was deleted is not an error.
func ResultOf(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictInterval}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}
