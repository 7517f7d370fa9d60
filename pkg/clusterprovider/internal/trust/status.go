// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
)

// Holds reports whether a cluster trusts the current OIDC provider of a request, by its status.
func Holds(ar *v1alpha1.AccessRequest) bool { return trustRank(ar) == 0 }

// trustRank returns 0 for a request whose current OIDC provider the cluster trusts.
func trustRank(ar *v1alpha1.AccessRequest) int {
	if ar.Spec.OIDC == nil {
		return 1
	}
	condition, provider := meta.FindStatusCondition(ar.Status.Conditions, clusterprovider.ConditionOIDCTrusted), trustOf(ar)
	if condition != nil && condition.Message == names(&provider) {
		return 0
	}
	return 1
}

// Record records on a request what the cluster trusts because of it, after access was granted for its current spec, or not.
func Record(ar *v1alpha1.AccessRequest, given bool) {
	forget(ar, given)
	if given {
		remember(ar)
	}
}

// remember records on a request what the cluster trusts because of it.
func remember(ar *v1alpha1.AccessRequest) {
	if ar.Spec.OIDC == nil {
		return
	}
	provider := trustOf(ar)
	hub.SetCondition(&ar.Status.Status, ar.Generation, metav1.Condition{
		Type: clusterprovider.ConditionOIDCTrusted, Status: metav1.ConditionTrue, Reason: hub.ReasonGranted, Message: names(&provider),
	})
}

// forget removes the record of what a request was trusted for and no longer requests: others may have got it since. Unless access was granted
// for its current spec, the cluster may still trust it, and the status records that until it does not.
func forget(ar *v1alpha1.AccessRequest, given bool) {
	if trustRank(ar) == 0 {
		return
	}
	if given || meta.FindStatusCondition(ar.Status.Conditions, clusterprovider.ConditionOIDCTrusted) == nil {
		meta.RemoveStatusCondition(&ar.Status.Conditions, clusterprovider.ConditionOIDCTrusted)
		return
	}
	hub.SetCondition(&ar.Status.Status, ar.Generation, metav1.Condition{
		Type: clusterprovider.ConditionOIDCTrusted, Status: metav1.ConditionFalse, Reason: hub.ReasonNotAskedFor,
		Message: "the cluster may still trust an OIDC provider that the request no longer specifies",
	})
}
