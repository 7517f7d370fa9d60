// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclusterset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

var tableConvertor = table.Convertor[*cluster.ManagedClusterSet]{
	Columns: []metav1.TableColumnDefinition{
		table.Name(),
		{Name: "Empty", Type: "string", Description: "Whether no cluster is in the set."},
		{Name: "Selector", Type: "string", Description: "The labels by which the set selects its clusters."},
		table.Age(),
		{Name: "Selector Type", Type: "string", Priority: 1, Description: "The way in which the set selects its clusters."},
	},
	Cells: func(s *cluster.ManagedClusterSet) []any {
		typ, text := selector.Describe(s)
		if text == "" {
			text = "<every cluster>"
		}
		return []any{
			s.Name,
			table.ConditionCell(s.Status.Conditions, cluster.ManagedClusterSetConditionEmpty),
			text,
			table.AgeCell(&s.ObjectMeta),
			typ,
		}
	},
}
