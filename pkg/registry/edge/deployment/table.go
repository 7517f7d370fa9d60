// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deployment has the common parts of the registries of policies and patterns: the columns of their results.
package deployment

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

// Namespace returns the column of clusterNamespace.
func Namespace() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Namespace", Type: "string", Description: "The namespace of the clusters to deploy to, if it is set."}
}

// Columns returns the columns of nodes, after those of the kind.
func Columns(more ...metav1.TableColumnDefinition) []metav1.TableColumnDefinition {
	return append([]metav1.TableColumnDefinition{
		{Name: "Selected", Type: "integer", Description: "Number of nodes that no rule excludes."},
		{Name: "Placed", Type: "integer", Description: "Number of nodes that have a placement."},
		{Name: "Running", Type: "integer", Description: "Number of nodes whose cluster reports that everything runs."},
		{Name: "Failed", Type: "integer", Description: "Number of nodes whose placement failed."},
		table.Age(),
		table.Wide(metav1.TableColumnDefinition{Name: "Valid", Type: "string", Description: "Whether the services exist and may be used, or the reason why not."}),
		table.Wide(metav1.TableColumnDefinition{Name: "Reached", Type: "integer", Description: "Number of nodes in the sets that are bound to the namespace."}),
	}, more...)
}

// Cells returns the cells for Columns.
func Cells(m *metav1.ObjectMeta, status *edge.DeploymentStatus) []any {
	return []any{
		int64(status.Nodes.Selected), int64(status.Nodes.Placed), int64(status.Nodes.Running), int64(status.Nodes.Failed), table.AgeCell(m),
		table.ReasonCell(status.Conditions, edge.ConditionValid), int64(status.Nodes.Reached),
	}
}

// ExcludedMost returns the rule that excludes most nodes.
func ExcludedMost(status *edge.DeploymentStatus) string {
	var most edge.ExcludedNodes
	for _, e := range status.Excluded {
		if e.Nodes > most.Nodes {
			most = e
		}
	}
	return most.Reason
}
