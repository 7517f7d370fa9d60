// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/target"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
)

// Granted records on a request that its access is granted.
func Granted(ar *v1alpha1.AccessRequest, message string, roles target.SeenRoles) {
	hub.SetCondition(&ar.Status.Status, ar.Generation, metav1.Condition{
		Type: clusterprovider.ConditionAccess, Status: metav1.ConditionTrue, Reason: hub.ReasonGranted, Message: message,
	})
	rememberRoles(roles, ar)
	ar.Status.Phase, ar.Status.ObservedGeneration = v1alpha1.REQUEST_GRANTED, ar.Generation
	ar.Status.SecretRef = &v1alpha1.LocalObjectReference{Name: hub.SecretName(ar.Name)}
}

// Failed records on a request why no access is granted, or no new one while the previous one is still valid.
func Failed(ar *v1alpha1.AccessRequest, why error, valid bool) {
	without(ar, hub.ReasonOf(why, hub.ReasonClusterError), why.Error())
	if !ar.Status.IsDenied() && !valid {
		ar.Status.Phase = v1alpha1.REQUEST_PENDING
	}
	ar.Status.ObservedGeneration = ar.Generation
}

// Withdrawn records on a request that its access was revoked until its Cluster has the cluster again. What the cluster may still have after a
// failure stays in the status, which keeps the finalizer on the request.
func Withdrawn(ar *v1alpha1.AccessRequest, why, failure error) {
	message := why.Error()
	ar.Status.Phase, ar.Status.ObservedGeneration = v1alpha1.REQUEST_PENDING, ar.Generation
	meta.RemoveStatusCondition(&ar.Status.Conditions, clusterprovider.ConditionRoles)
	if failure == nil {
		ar.Status.SecretRef = nil
		meta.RemoveStatusCondition(&ar.Status.Conditions, clusterprovider.ConditionOIDCTrusted)
	} else {
		message += "; revoking access: " + failure.Error()
	}
	without(ar, hub.ReasonClusterNotHeld, message)
}

// RecordRevoking records on a request that its access will be revoked, before it is.
func RecordRevoking(ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster) {
	ar.Status.Phase = v1alpha1.REQUEST_PENDING
	without(ar, hub.ReasonClusterNotReady,
		fmt.Sprintf("the Cluster '%s': its cluster is being withdrawn, and all access is being revoked", client.ObjectKeyFromObject(cluster)))
}

// RecordRevoked records on a denied request that it no longer has access.
func RecordRevoked(ar *v1alpha1.AccessRequest) {
	ar.Status.SecretRef = nil
	meta.RemoveStatusCondition(&ar.Status.Conditions, clusterprovider.ConditionRoles)
	without(ar, hub.ReasonDenied, "the access was revoked")
}

// Denied records on a request that it has been denied.
func Denied(ar *v1alpha1.AccessRequest) {
	ar.Status.Phase, ar.Status.ObservedGeneration = v1alpha1.REQUEST_DENIED, ar.Generation
	hub.SetCondition(&ar.Status.Status, ar.Generation, metav1.Condition{
		Type: clusterprovider.ConditionDenied, Status: metav1.ConditionTrue, Reason: hub.ReasonDenied,
		Message: "the request was denied permanently: delete it and create a new one",
	})
}

func without(ar *v1alpha1.AccessRequest, reason, message string) {
	hub.SetCondition(&ar.Status.Status, ar.Generation, metav1.Condition{
		Type: clusterprovider.ConditionAccess, Status: metav1.ConditionFalse, Reason: reason, Message: message,
	})
}

// Report writes the status of a request, and records an event about its access.
func (r *Answers) Report(ctx context.Context, before, ar *v1alpha1.AccessRequest) error {
	if err := hub.PatchStatus(ctx, r.client, before, ar); err != nil {
		return err
	}
	conditionevents.Record(r.events, ar, before.Status.Conditions, ar.Status.Conditions, clusterprovider.ConditionAccess, "GiveAccess")
	r.reportRoles(before, ar)
	return nil
}

// Roles records on a request whose access is in place whether its roles exist.
func (r *Answers) Roles(ctx context.Context, ar *v1alpha1.AccessRequest, seen target.SeenRoles) error {
	before := ar.DeepCopy()
	rememberRoles(seen, ar)
	if err := hub.PatchStatus(ctx, r.client, before, ar); err != nil {
		return err
	}
	r.reportRoles(before, ar)
	return nil
}

// reportRoles records an event when roles are missing, or missing roles exist again. It records none if all exist from the start.
func (r *Answers) reportRoles(before, ar *v1alpha1.AccessRequest) {
	if meta.FindStatusCondition(before.Status.Conditions, clusterprovider.ConditionRoles) == nil &&
		meta.IsStatusConditionTrue(ar.Status.Conditions, clusterprovider.ConditionRoles) {
		return
	}
	conditionevents.Record(r.events, ar, before.Status.Conditions, ar.Status.Conditions, clusterprovider.ConditionRoles, "LookForRoles")
}

// maxRolesNamed limits the length of a message.
const maxRolesNamed = 20

// rememberRoles sets the condition about the roles of a request. What is unknown stays as it was last reported.
func rememberRoles(s target.SeenRoles, ar *v1alpha1.AccessRequest) {
	condition := metav1.Condition{
		Type: clusterprovider.ConditionRoles, Status: metav1.ConditionTrue, Reason: hub.ReasonRolesFound, Message: "the cluster has all referenced roles",
	}
	switch {
	case !s.Known:
		return
	case !s.Referred:
		meta.RemoveStatusCondition(&ar.Status.Conditions, clusterprovider.ConditionRoles)
		return
	case len(s.Missing) > 0:
		named, more := s.Missing, ""
		if len(named) > maxRolesNamed {
			named, more = named[:maxRolesNamed], fmt.Sprintf(" and %d more", len(s.Missing)-maxRolesNamed)
		}
		condition.Status, condition.Reason = metav1.ConditionFalse, hub.ReasonRolesMissing
		condition.Message = "roles not found in the cluster, which grant no rights yet: " + strings.Join(named, ", ") + more
	}
	hub.SetCondition(&ar.Status.Status, ar.Generation, condition)
}

// MayHaveAccess reports whether a request has or had access by its status that is not known to be revoked: the condition does not cover access
// that can currently be neither renewed nor revoked.
func MayHaveAccess(ar *v1alpha1.AccessRequest) bool {
	return ar.Status.SecretRef != nil || meta.IsStatusConditionTrue(ar.Status.Conditions, clusterprovider.ConditionAccess)
}
