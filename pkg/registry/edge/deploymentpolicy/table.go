// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploymentpolicy

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/registry/edge/deployment"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

var tableConvertor = table.Convertor[*edge.DeploymentPolicy]{
	Columns: slices.Concat([]metav1.TableColumnDefinition{
		table.Name(),
		{Name: "Service", Type: "string", Description: "The service that is deployed."},
		deployment.Namespace(),
	}, deployment.Columns(table.Wide(metav1.TableColumnDefinition{
		Name: "Excluded by", Type: "string", Description: "The rule that excludes the most nodes."}))),
	Cells: func(p *edge.DeploymentPolicy) []any {
		return slices.Concat([]any{p.Name, p.Spec.Service.Name, p.Spec.Service.ClusterNamespace},
			deployment.Cells(&p.ObjectMeta, &p.Status), []any{deployment.ExcludedMost(&p.Status)})
	},
}
