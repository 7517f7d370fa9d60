// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeservice

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

var tableConvertor = table.Convertor[*edge.EdgeService]{
	Columns: []metav1.TableColumnDefinition{
		table.Name(),
		{Name: "Service", Type: "string", Description: "The name of the service, which all of its versions share."},
		{Name: "Version", Type: "string", Description: "The version of the service."},
		{Name: "Arch", Type: "string", Description: "The architecture of the service."},
		{Name: "Public", Type: "boolean", Description: "Whether policies and patterns of all namespaces may use the service."},
		{Name: "For", Type: "string", Description: "The types of nodes that the service can be deployed to: clusters, devices, or both."},
		table.Age(),
		table.Wide(metav1.TableColumnDefinition{Name: "Namespace", Type: "string", Description: "The namespace that the archive names, if it names exactly one."}),
		table.Wide(metav1.TableColumnDefinition{Name: "Objects", Type: "integer", Description: "Number of objects in the archive."}),
	},
	Cells: func(s *edge.EdgeService) []any {
		return []any{
			s.Name, s.Spec.URL, s.Spec.Version, s.Spec.Arch, s.Spec.Public, isFor(s), table.AgeCell(&s.ObjectMeta),
			s.Status.EmbeddedNamespace, int64(s.Status.Objects),
		}
	},
}

func isFor(s *edge.EdgeService) string {
	switch {
	case s.Spec.ClusterDeployment == nil:
		return "device"
	case s.Spec.Deployment == nil:
		return "cluster"
	}
	return "both"
}
