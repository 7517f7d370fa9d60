// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

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

const (
	reasonProgressing        = "Progressing"
	reasonProviderError      = "ProviderError"
	reasonRemoving           = "Removing"
	reasonWaitingForDeletion = "WaitingForDeletion"
	reasonClusterNotReady    = "ClusterNotReady"
	reasonClusterNotHeld     = "ClusterNotHeld"
	reasonClusterError       = "ClusterInteractionProblem"
	reasonNotManaged         = "ResourceNotManaged"
	reasonRecreating         = "WaitingForRecreation"
	reasonOIDCNotSupported   = "OIDCNotSupported"
	reasonOIDCConflict       = "OIDCConflict"
	reasonOIDCIssuerRefused  = "OIDCIssuerRefused"
	reasonOIDCPrefixRefused  = "OIDCPrefixRefused"
	reasonNotAskedFor        = "NotAskedFor"
	reasonRolesFound         = "RolesFound"
	reasonRolesMissing       = "RolesMissing"
	reasonGranted            = "Granted"
	reasonDenied             = "Denied"
	reasonSecretsForbidden   = "SecretsForbidden"
)

// outdatedInterval is how soon an object is looked at again that was changed meanwhile: the caches know by then.
const outdatedInterval = 100 * time.Millisecond

// maxMessage is the length that the API allows a message of a condition.
const maxMessage = 32768

var illegalInReason = regexp.MustCompile(`[^A-Za-z0-9_,:]|^[^A-Za-z]|[,:]$`)

// setCondition sets a condition among others.
func setCondition(status *v1alpha1.Status, generation int64, condition metav1.Condition) {
	if condition.Reason == "" {
		condition.Reason = condition.Type + "_" + string(condition.Status)
	}
	condition.Reason = illegalInReason.ReplaceAllString(condition.Reason, "_")
	if len(condition.Message) > maxMessage {
		condition.Message = strings.ToValidUTF8(condition.Message[:maxMessage], "")
	}
	condition.ObservedGeneration = generation
	meta.SetStatusCondition(&status.Conditions, condition)
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

// operation is what the annotation of an object asks for.
func operation(object client.Object) string {
	return object.GetAnnotations()[v1alpha1.OperationAnnotation]
}

// endOperation removes the annotation that asks for a reconciliation.
func endOperation(ctx context.Context, c client.Client, object client.Object) error {
	return patch(ctx, c, object, func() {
		annotations := object.GetAnnotations()
		delete(annotations, v1alpha1.OperationAnnotation)
		object.SetAnnotations(annotations)
	})
}

// patch changes an object by what mutate does to it, if that is anything. It fails if somebody else has changed it meanwhile:
// lists, such as finalizers, are replaced.
func patch(ctx context.Context, c client.Client, object client.Object, mutate func()) error {
	before := object.DeepCopyObject().(client.Object)
	mutate()
	if equality.Semantic.DeepEqual(before, object) {
		return nil
	}
	return c.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// patchStatus does the same with its status.
func patchStatus(ctx context.Context, c client.Client, before, after client.Object) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	return c.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// settle ends a reconciliation whose write failed. It is no fault that somebody else has changed or deleted the object.
func settle(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: outdatedInterval}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}
