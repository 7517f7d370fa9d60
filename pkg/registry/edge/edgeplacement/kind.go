// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edgeplacement is the registry of edge placements.
package edgeplacement

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/validation"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

// Kind is the kind EdgePlacement.
var Kind = &hubgeneric.Kind[*edge.EdgePlacement]{
	Resource:   edge.Resource("edgeplacements"),
	Singular:   "edgeplacement",
	ShortNames: []string{"epl"},
	Categories: []string{"edge"},
	Namespaced: true,
	Versions:   []schema.GroupVersion{v1alpha1.SchemeGroupVersion},

	New:     func() *edge.EdgePlacement { return &edge.EdgePlacement{} },
	NewList: func() runtime.Object { return &edge.EdgePlacementList{} },
	Table:   tableConvertor,

	Spec:   func(p *edge.EdgePlacement) any { return &p.Spec },
	Status: func(p *edge.EdgePlacement) any { return &p.Status },
	Fields: func(p *edge.EdgePlacement) fields.Set {
		return fields.Set{
			"spec.node": p.Spec.Node, "spec.origin.kind": p.Spec.Origin.Kind, "spec.origin.name": p.Spec.Origin.Name,
			"status.state": string(p.Status.State),
		}
	},

	Validate:             validation.ValidateEdgePlacement,
	ValidateUpdate:       validation.ValidateEdgePlacementUpdate,
	ValidateStatusUpdate: validation.ValidateEdgePlacementStatusUpdate,
}

var tableConvertor = table.Convertor[*edge.EdgePlacement]{
	Columns: []metav1.TableColumnDefinition{
		table.Name(),
		{Name: "Node", Type: "string", Description: "The node to deploy to."},
		{Name: "Of", Type: "string", Description: "The policy or pattern that the placement belongs to."},
		{Name: "Version", Type: "string", Description: "The version of the service, or of each service of a pattern."},
		{Name: "Namespace", Type: "string", Description: "The namespace of the cluster, or that of each service of a pattern."},
		{Name: "State", Type: "string", Description: "The state of the placement."},
		table.Age(),
		table.Wide(metav1.TableColumnDefinition{Name: "Reason", Type: "string", Description: "The reason for the state."}),
		table.Wide(metav1.TableColumnDefinition{Name: "Work", Type: "string", Description: "The ManifestWork in the namespace of the node."}),
	},
	Cells: func(p *edge.EdgePlacement) []any {
		of := "policy/"
		if p.Spec.Origin.Kind == edge.KindDeploymentPattern {
			of = "pattern/"
		}
		return []any{
			p.Name, p.Spec.Node, of + p.Spec.Origin.Name,
			each(p.Spec.Services, func(s edge.PlacedService) string { return s.Version }),
			each(p.Spec.Services, func(s edge.PlacedService) string { return s.TargetNamespace }),
			string(p.Status.State), table.AgeCell(&p.ObjectMeta), p.Status.Reason, p.Status.Work,
		}
	},
}

// each returns the texts of the services, without duplicates.
func each(services []edge.PlacedService, say func(edge.PlacedService) string) string {
	var said []string
	for _, s := range services {
		if text := say(s); !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return strings.Join(said, ",")
}
