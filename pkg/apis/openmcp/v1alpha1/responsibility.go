// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types of the hub's own controllers.
const (
	// ConditionPrepared reports whether the Cluster of an AccessRequest and the responsible provider are determined. Its message describes what is
	// missing.
	ConditionPrepared = "Prepared"
	// ConditionAccessRequestsDeleted reports whether all AccessRequests for a Cluster that is being deleted are gone.
	ConditionAccessRequestsDeleted = "AccessRequestsDeleted"
	// ConditionProviderMissing is True while no cluster provider has handled a Cluster. Otherwise, the condition does not exist.
	ConditionProviderMissing = "ProviderMissing"
)

// ReasonDeniedByPolicy is set when no rule of the hub's policy allows the request.
const ReasonDeniedByPolicy = "DeniedByPolicy"

// IsClusterProviderResponsibleForAccessRequest reports whether the provider must handle an AccessRequest, or whether any provider must, if the name
// is empty. Other controllers ignore such a request.
//
// A granted request that is changed or deleted has no responsible provider until its phase is Pending again. So a provider observes each generation
// as Pending before it grants it.
func IsClusterProviderResponsibleForAccessRequest(r *AccessRequest, provider string) bool {
	if r == nil {
		return false
	}
	responsible, labelled := r.Labels[ProviderLabel]
	if _, profiled := r.Labels[ProfileLabel]; !labelled || !profiled {
		return false
	}
	if provider != "" && responsible != provider {
		return false
	}
	switch r.Status.Phase {
	case REQUEST_PENDING:
		return true
	case REQUEST_GRANTED:
		return r.Status.ObservedGeneration == r.Generation
	default:
		return false
	}
}

// IsPrepared reports whether the current generation of an AccessRequest has been prepared, which includes the check of the policy. A provider grants
// nothing else: a Pending request can be changed, and its provider remains responsible for it.
//
// openMCP's operator does not report what it has prepared, and has no policy. With it, a request is prepared as soon as it has a responsible
// provider.
func IsPrepared(r *AccessRequest) bool {
	prepared := meta.FindStatusCondition(r.Status.Conditions, ConditionPrepared)
	return prepared == nil || prepared.Status == metav1.ConditionTrue && prepared.ObservedGeneration == r.Generation
}
