// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

// tableConvertor has the columns of upstream's CustomResourceDefinition, and the age where it fits.
var tableConvertor = table.Convertor[*work.ManifestWorkReplicaSet]{
	Columns: []metav1.TableColumnDefinition{
		table.Name(),
		{Name: "Placement", Type: "string", Description: "The reason of the condition PlacementVerified."},
		{Name: "Found", Type: "string", Description: "Whether all placements exist and have decisions."},
		{Name: "ManifestWorks", Type: "string", Description: "The reason of the condition ManifestworkApplied."},
		{Name: "Applied", Type: "string", Description: "Whether all works are applied and in their desired state."},
		table.Wide(table.Age()),
	},
	Cells: func(s *work.ManifestWorkReplicaSet) []any {
		return []any{
			s.Name,
			table.ReasonCell(s.Status.Conditions, work.ManifestWorkReplicaSetConditionPlacementVerified),
			table.ConditionCell(s.Status.Conditions, work.ManifestWorkReplicaSetConditionPlacementVerified),
			table.ReasonCell(s.Status.Conditions, work.ManifestWorkReplicaSetConditionManifestworkApplied),
			table.ConditionCell(s.Status.Conditions, work.ManifestWorkReplicaSetConditionManifestworkApplied),
			table.AgeCell(&s.ObjectMeta),
		}
	},
}
