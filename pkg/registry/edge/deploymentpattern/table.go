// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploymentpattern

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/registry/edge/deployment"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

var tableConvertor = table.Convertor[*edge.DeploymentPattern]{
	Columns: slices.Concat([]metav1.TableColumnDefinition{
		table.Name(),
		{Name: "Services", Type: "integer", Description: "Number of services in the pattern."},
		deployment.Namespace(),
	}, deployment.Columns()),
	Cells: func(p *edge.DeploymentPattern) []any {
		return slices.Concat([]any{p.Name, int64(len(p.Spec.Services)), p.Spec.ClusterNamespace}, deployment.Cells(&p.ObjectMeta, &p.Status))
	},
}
