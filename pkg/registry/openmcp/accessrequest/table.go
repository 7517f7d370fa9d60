// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

var tableConvertor = table.Convertor[*openmcp.AccessRequest]{
	Columns: []metav1.TableColumnDefinition{
		table.Name(),
		{Name: "Phase", Type: "string", Description: "Whether the request is pending, granted or denied."},
	},
	Cells: func(r *openmcp.AccessRequest) []any { return []any{r.Name, r.Status.Phase} },
}
