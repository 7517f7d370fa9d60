// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

var tableConvertor = table.Convertor[*openmcp.Cluster]{
	Columns: []metav1.TableColumnDefinition{
		table.Name(),
		{Name: "Purposes", Type: "string", Description: "The purposes of the cluster."},
		{Name: "Phase", Type: "string", Description: "The phase that the cluster provider reports."},
		{Name: "Version", Type: "string", Description: "The Kubernetes version of the cluster."},
		{Name: "Provider", Type: "string", Description: "The cluster provider that created the cluster."},
		{Name: "Profile", Type: "string", Priority: 10, Description: "The ClusterProfile that the cluster is created from."},
		{Name: "Info", Type: "string", Priority: 10, Description: "The information of the cluster provider about the cluster."},
		table.Age(),
	},
	Cells: func(c *openmcp.Cluster) []any {
		return []any{
			c.Name,
			purposes(c.Spec.Purposes),
			c.Status.Phase,
			c.Labels[openmcp.K8sVersionLabel],
			c.Labels[openmcp.ProviderLabel],
			c.Spec.Profile,
			c.Annotations[openmcp.ProviderInfoAnnotation],
			table.AgeCell(&c.ObjectMeta),
		}
	},
}

// purposes returns the cell of a list of purposes.
func purposes(all []string) any {
	if len(all) == 0 {
		return ""
	}
	text, err := json.Marshal(all)
	if err != nil {
		return ""
	}
	return string(text)
}
