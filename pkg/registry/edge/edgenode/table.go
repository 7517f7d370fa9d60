// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgenode

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

// unknown is shown for a fact that the agent has not reported. It is never 0.
const unknown = "unknown"

var tableConvertor = table.Convertor[*edge.EdgeNode]{
	Columns: []metav1.TableColumnDefinition{
		table.Name(),
		{Name: "Type", Type: "string", Description: "The type of the node: cluster or device."},
		{Name: "Namespace", Type: "string", Description: "The default namespace of services."},
		{Name: "Scope", Type: "string", Description: "Whether the agent of the node deploys to any namespace of the cluster, or only to its own."},
		{Name: "Arch", Type: "string", Description: "The architecture of the node."},
		{Name: "Pattern", Type: "string", Description: "The pattern of the node. If it is set, no policy deploys to the node."},
		table.Age(),
		table.Wide(metav1.TableColumnDefinition{Name: "CPU", Type: "string", Description: "Number of CPUs of the cluster."}),
		table.Wide(metav1.TableColumnDefinition{Name: "Memory", Type: "string", Description: "The memory of the cluster, in MB."}),
		table.Wide(metav1.TableColumnDefinition{Name: "Kubernetes", Type: "string", Description: "The Kubernetes version of the cluster."}),
		table.Wide(metav1.TableColumnDefinition{Name: "Cluster ID", Type: "string", Description: "The identifier of the cluster, which all of its agents report."}),
	},
	Cells: func(n *edge.EdgeNode) []any {
		return []any{
			n.Name, string(n.Spec.NodeType), known(n.Status.Namespace), scope(n.Status.NamespaceScoped), known(n.Status.Arch), n.Spec.Pattern,
			table.AgeCell(&n.ObjectMeta),
			number(n.Status.CPU), number(n.Status.Memory), known(n.Status.KubernetesVersion), known(n.Status.ClusterID),
		}
	},
}

func known(fact string) string {
	if fact == "" {
		return unknown
	}
	return fact
}

func number(fact *int64) any {
	if fact == nil {
		return unknown
	}
	return *fact
}

func scope(namespaceScoped *bool) string {
	switch {
	case namespaceScoped == nil:
		return unknown
	case *namespaceScoped:
		return "namespace"
	}
	return "cluster"
}
