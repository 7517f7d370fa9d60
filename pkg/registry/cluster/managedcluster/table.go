// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

var tableConvertor = table.Convertor[*cluster.ManagedCluster]{
	Columns: []metav1.TableColumnDefinition{
		table.Name(),
		{Name: "Hub Accepted", Type: "boolean", Description: "Whether the hub accepts the cluster's agent."},
		{Name: "Managed Cluster URLs", Type: "string", Description: "The addresses of the cluster's API server."},
		{Name: "Joined", Type: "string", Description: "Whether the cluster's agent has its own identity on the hub."},
		{Name: "Available", Type: "string", Description: "Whether the cluster's agent and API server are healthy."},
		table.Age(),
		{Name: "Version", Type: "string", Priority: 1, Description: "The cluster's Kubernetes version."},
		{Name: "Cluster Set", Type: "string", Priority: 1, Description: "The exclusive set that the label cluster.open-cluster-management.io/clusterset names."},
	},
	Cells: func(c *cluster.ManagedCluster) []any {
		urls := make([]string, 0, len(c.Spec.ManagedClusterClientConfigs))
		for _, config := range c.Spec.ManagedClusterClientConfigs {
			urls = append(urls, config.URL)
		}
		return []any{
			c.Name,
			c.Spec.HubAcceptsClient,
			strings.Join(urls, ","),
			table.ConditionCell(c.Status.Conditions, cluster.ManagedClusterConditionJoined),
			table.ConditionCell(c.Status.Conditions, cluster.ManagedClusterConditionAvailable),
			table.AgeCell(&c.ObjectMeta),
			c.Status.Version.Kubernetes,
			c.Labels[cluster.ClusterSetLabel],
		}
	},
}
