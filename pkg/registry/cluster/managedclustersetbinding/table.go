// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersetbinding

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

var tableConvertor = table.Convertor[*cluster.ManagedClusterSetBinding]{
	Columns: []metav1.TableColumnDefinition{
		table.Name(),
		{Name: "Bound", Type: "string", Description: "Whether the set exists."},
		table.Age(),
	},
	Cells: func(b *cluster.ManagedClusterSetBinding) []any {
		return []any{
			b.Name,
			table.ConditionCell(b.Status.Conditions, cluster.ClusterSetBindingBoundType),
			table.AgeCell(&b.ObjectMeta),
		}
	},
}
