// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeplacement

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func placement() *edge.EdgePlacement {
	p := &edge.EdgePlacement{
		ObjectMeta: metav1.ObjectMeta{Namespace: registrytest.Namespace},
		Spec: edge.EdgePlacementSpec{
			Node: "madrid-1", Origin: edge.PlacementOrigin{Kind: edge.KindDeploymentPattern, Name: "all"},
			Services: []edge.PlacedService{
				{Name: "web", Org: "shop", Version: "1.0.0", Arch: "amd64", TargetNamespace: "blue"},
				{Name: "db", Org: "shop", Version: "2.0.0", Arch: "*", TargetNamespace: "blue"},
			},
		},
	}
	p.Name = edge.PlacementName(p.Spec.Origin, p.Spec.Node)
	return p
}

func TestStorage(t *testing.T) {
	// The suite creates objects with many names.
	anyName := *Kind
	anyName.Validate = func(object *edge.EdgePlacement) field.ErrorList {
		return slices.DeleteFunc(Kind.Validate(object), func(e *field.Error) bool { return strings.Contains(e.Detail, "is derived from") })
	}
	registrytest.Suite[*edge.EdgePlacement]{
		Kind:    &anyName,
		Valid:   placement,
		Invalid: []func(*edge.EdgePlacement){func(p *edge.EdgePlacement) { p.Spec.Services[0].TargetNamespace = "ABC" }},
		Change:  func(p *edge.EdgePlacement) { p.Spec.Services = p.Spec.Services[:1] },
		InvalidChanges: []func(*edge.EdgePlacement){
			func(p *edge.EdgePlacement) { p.Spec.Node = "madrid-2" },
			func(p *edge.EdgePlacement) { p.Spec.Origin.Name = "web" },
		},
		Matching: []fields.Set{{"spec.node": "madrid-1"}, {"spec.origin.kind": "DeploymentPattern"}, {"spec.origin.name": "all"}, {"status.state": ""}},
		Others:   []fields.Set{{"spec.node": "all"}, {"spec.origin.kind": "DeploymentPolicy"}, {"spec.origin.name": "web"}, {"status.state": "Failed"}},
		Status: func(p *edge.EdgePlacement) {
			p.Status = edge.EdgePlacementStatus{State: edge.PlacementFailed, Reason: "Foreign", Work: "w"}
		},
		BadStatus:  func(p *edge.EdgePlacement) { p.Status.State = "Done" },
		Columns:    "Name/0 Node/0 Of/0 Version/0 Namespace/0 State/0 Age/0 Reason/1 Work/1",
		Cells:      placement().Name + "|madrid-1|pattern/all|1.0.0,2.0.0|blue|Failed|<unknown>|Foreign|w",
		ShortNames: "epl",
	}.Run(t)
}
