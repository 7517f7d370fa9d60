// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetmember

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

var tableConvertor = table.Convertor[*view.ClusterSetMember]{
	Columns: []metav1.TableColumnDefinition{
		{Name: "Set", Type: "string", Description: "The name of the cluster set."},
		{Name: "Cluster", Type: "string", Description: "The name of the managed cluster."},
		{Name: "Accepted", Type: "boolean", Description: "Whether the hub accepts the cluster's agent."},
		{Name: "Joined", Type: "string", Description: "Whether the cluster's agent has its own identity on the hub."},
		{Name: "Available", Type: "string", Description: "Whether the cluster's agent and API server are healthy."},
		table.Age(),
		{Name: "Version", Type: "string", Priority: 1, Description: "The cluster's Kubernetes version."},
		{Name: "Selected By", Type: "string", Priority: 1, Description: "The label selector by which the set selects the cluster."},
		{Name: "Taints", Type: "string", Priority: 1, Description: "The taints of the cluster, each in the form key=value:effect."},
	},
	Cells: func(m *view.ClusterSetMember) []any {
		selectedBy := m.Status.SelectedBy.Selector
		if selectedBy == "" {
			selectedBy = "<every cluster>"
		}
		return []any{
			m.Spec.ClusterSet,
			m.Spec.Cluster,
			m.Status.Accepted,
			string(m.Status.Joined),
			string(m.Status.Available),
			table.AgeCell(&m.ObjectMeta),
			m.Status.KubernetesVersion,
			selectedBy,
			strings.Join(m.Status.Taints, ","),
		}
	},
}
