// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

// tableConvertor has the columns of upstream's CustomResourceDefinition, and the age where it fits.
var tableConvertor = table.Convertor[*cluster.Placement]{
	Columns: []metav1.TableColumnDefinition{
		table.Name(),
		{Name: "Succeeded", Type: "string", Description: "Whether the clusters that the placement requests were found."},
		{Name: "Reason", Type: "string", Description: "The reason of the condition PlacementSatisfied."},
		{Name: "SelectedClusters", Type: "integer", Description: "The number of selected clusters."},
		table.Wide(table.Age()),
	},
	Cells: func(p *cluster.Placement) []any {
		return []any{
			p.Name,
			table.ConditionCell(p.Status.Conditions, cluster.PlacementConditionSatisfied),
			table.ReasonCell(p.Status.Conditions, cluster.PlacementConditionSatisfied),
			int64(p.Status.NumberOfSelectedClusters),
			table.AgeCell(&p.ObjectMeta),
		}
	},
}
