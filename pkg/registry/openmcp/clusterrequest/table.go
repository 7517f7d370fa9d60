// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterrequest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

var tableConvertor = table.Convertor[*openmcp.ClusterRequest]{
	Columns: []metav1.TableColumnDefinition{
		table.Name(),
		{Name: "Purpose", Type: "string", Description: "The purpose that the cluster is requested for."},
		{Name: "Phase", Type: "string", Description: "Whether the request is pending, granted or denied."},
		{Name: "Cluster", Type: "string", Description: "The Cluster that is assigned to the request."},
		{Name: "Cluster-NS", Type: "string", Description: "The namespace of that Cluster."},
	},
	Cells: func(r *openmcp.ClusterRequest) []any {
		given := openmcp.ObjectReference{}
		if r.Status.Cluster != nil {
			given = *r.Status.Cluster
		}
		return []any{r.Name, r.Spec.Purpose, r.Status.Phase, given.Name, given.Namespace}
	},
}
