// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Types of conditions that the hub's own controllers write.
const (
	// ConditionPrepared of an AccessRequest says whether it is clear which cluster it is for and who is responsible for it,
	// or what is missing.
	ConditionPrepared = "Prepared"
	// ConditionAccessRequestsDeleted of a Cluster that is being deleted says whether there are AccessRequests for it.
	ConditionAccessRequestsDeleted = "AccessRequestsDeleted"
	// ConditionProviderMissing of a Cluster is there while no cluster provider has looked at it.
	ConditionProviderMissing = "ProviderMissing"
)

// ReasonDeniedByPolicy of a condition means that no rule of the hub's policy allows the request.
const ReasonDeniedByPolicy = "DeniedByPolicy"

// IsClusterProviderResponsibleForAccessRequest says whether an AccessRequest is a provider's to handle: any provider's, if
// the name is empty. Other controllers leave such a request alone.
//
// A request that is granted and then changed or deleted has no provider until its phase is Pending again. So a provider sees
// each generation as Pending before it grants it, and grants nothing that it has not looked at.
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

// IsPrepared says whether the preparation of an AccessRequest, and with it the policy, has seen it as it is. A provider grants
// nothing else: a request can be changed as long as it is Pending, and stays its provider's.
//
// openMCP's operator says nothing of what it has prepared, and knows no policy. With it, a request is prepared once it is a
// provider's.
func IsPrepared(r *AccessRequest) bool {
	prepared := meta.FindStatusCondition(r.Status.Conditions, ConditionPrepared)
	return prepared == nil || prepared.Status == metav1.ConditionTrue && prepared.ObservedGeneration == r.Generation
}
