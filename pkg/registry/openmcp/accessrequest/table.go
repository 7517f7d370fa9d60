// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

var tableConvertor = table.Convertor[*openmcp.AccessRequest]{
	Columns: []metav1.TableColumnDefinition{
		table.Name(),
		{Name: "Phase", Type: "string", Description: "Whether the request is pending, granted or denied, or its access is being revoked."},
		{Name: "Cluster", Type: "string", Description: "The Cluster that access is requested for, if it is known."},
		{Name: "Cluster-NS", Type: "string", Description: "The namespace of that Cluster."},
		{Name: "Reason", Type: "string", Description: "Why access is not granted, or was revoked."},
		{Name: "Message", Type: "string", Priority: 1, Description: "The message for the reason."},
	},
	Cells: func(r *openmcp.AccessRequest) []any {
		phase, cluster, why := r.Status.Phase, openmcp.ObjectReference{}, missing(r)
		if !r.DeletionTimestamp.IsZero() {
			phase = v1alpha1.StatusPhaseTerminating
		}
		if r.Spec.ClusterRef != nil {
			cluster = *r.Spec.ClusterRef
		}
		return []any{r.Name, phase, cluster.Name, cluster.Namespace, why.Reason, why.Message}
	},
}

// missing returns the condition with what a request lacks, if any. If it is not prepared, it lacks everything else as well.
func missing(r *openmcp.AccessRequest) (why metav1.Condition) {
	for _, condition := range r.Status.Conditions {
		if condition.Status == metav1.ConditionFalse && (why.Type == "" || condition.Type == v1alpha1.ConditionPrepared) {
			why = condition
		}
	}
	return why
}
