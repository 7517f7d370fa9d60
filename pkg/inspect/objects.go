// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	openmcpv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// Placement returns the health of a placement.
func Placement(p *v1beta1.Placement) Health {
	misconfigured := meta.FindStatusCondition(p.Status.Conditions, v1beta1.PlacementConditionMisconfigured)
	satisfied := meta.FindStatusCondition(p.Status.Conditions, v1beta1.PlacementConditionSatisfied)
	switch {
	case misconfigured != nil && misconfigured.Status == metav1.ConditionTrue:
		return FromCondition(Unhealthy, misconfigured)
	case satisfied != nil:
		return FromCondition(FromStatus(satisfied.Status), satisfied)
	}
	return Because(Unknown, ReasonNotTold, "the scheduler has not decided yet")
}

// AccessRequest returns the health of a request for access.
func AccessRequest(r *openmcpv1alpha1.AccessRequest) Health {
	state := Progressing
	switch {
	case !r.DeletionTimestamp.IsZero():
		return deleting(&r.ObjectMeta, "it is being deleted")
	case r.Status.IsGranted() && r.Status.ObservedGeneration == r.Generation:
		return Because(Healthy, r.Status.Phase, "")
	case r.Status.IsDenied():
		state = Unhealthy
	}
	if c := Waits(r); c != nil {
		return FromCondition(state, c)
	}
	return Because(state, r.Status.Phase, "the cluster provider has not answered yet")
}

// Waits returns the first condition of a request that is not True, which the request waits for. It returns nil if all conditions are True.
func Waits(r *openmcpv1alpha1.AccessRequest) *metav1.Condition {
	for i := range r.Status.Conditions {
		if c := &r.Status.Conditions[i]; c.Status != metav1.ConditionTrue {
			return c
		}
	}
	return nil
}

// EdgePlacement returns the health of an edge placement, by the state that the hub has computed.
func EdgePlacement(p *edgev1alpha1.EdgePlacement) Health {
	s := &p.Status
	h := Because(Unknown, ReasonNotTold, "the hub has not reported it yet")
	switch s.State {
	case "":
		return h
	case edgev1alpha1.PlacementRunning:
		h.State = Healthy
	case edgev1alpha1.PlacementFailed:
		h.State = Unhealthy
	case edgev1alpha1.PlacementPending, edgev1alpha1.PlacementDelivering, edgev1alpha1.PlacementRemoving:
		h.State = Progressing
	}
	h.Reason, h.Message = s.Reason, s.Message
	if s.LastTransitionTime != nil {
		h = h.at(*s.LastTransitionTime)
	}
	return h
}

// CertificateRequest returns the health of a certificate request. Its reason is Denied, Failed, Issued, Approved or Pending.
func CertificateRequest(r *certificatesv1.CertificateSigningRequest) Health {
	h := Because(Progressing, "Pending", "").at(r.CreationTimestamp)
	for i := range r.Status.Conditions {
		switch c := &r.Status.Conditions[i]; c.Type {
		case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			return Because(Unhealthy, string(c.Type), c.Message)
		case certificatesv1.CertificateApproved:
			h = Because(Progressing, string(c.Type), "")
		}
	}
	if len(r.Status.Certificate) > 0 {
		return Because(Healthy, "Issued", "")
	}
	return h
}

// Deployment returns the health of a component that runs as a Deployment: all of its pods are ready, and have the current template.
func Deployment(d *appsv1.Deployment) Health {
	wanted := int32(1)
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	switch s := &d.Status; {
	case s.ReadyReplicas < wanted:
		return Because(Unhealthy, "", fmt.Sprintf("%d of %d ready", s.ReadyReplicas, wanted))
	case s.UpdatedReplicas < wanted || s.ObservedGeneration < d.Generation:
		return Because(Progressing, "", fmt.Sprintf("%d of %d updated", s.UpdatedReplicas, wanted))
	default:
		return Because(Healthy, "", fmt.Sprintf("%d ready", s.ReadyReplicas))
	}
}

// Explanation returns the reason and message of a health in one text, without those that are empty.
func (h Health) Explanation() string {
	return strings.TrimSuffix(strings.TrimPrefix(h.Reason+": "+h.Message, ": "), ": ")
}
