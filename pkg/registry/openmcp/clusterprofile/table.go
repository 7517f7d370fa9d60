// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprofile

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

var tableConvertor = table.Convertor[*openmcp.ClusterProfile]{
	Columns: []metav1.TableColumnDefinition{
		table.Name(),
		{Name: "Provider", Type: "string", Description: "The cluster provider that created the profile."},
		{Name: "Config", Type: "string", Description: "The configuration of the provider that the profile is derived from."},
	},
	Cells: func(p *openmcp.ClusterProfile) []any {
		return []any{p.Name, p.Spec.ProviderRef.Name, p.Spec.ProviderConfigRef.Name}
	},
}
