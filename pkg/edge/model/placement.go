// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge"
)

// Placed returns the services of a placement, for edge.Once: they are already placed on this node.
func Placed(p *api.EdgePlacement, node *edge.Node) ([]*edge.Placement, error) {
	if p.Spec.Node != node.Name() {
		return nil, fmt.Errorf("placement %s is of node %s, and not of %s", p.Name, p.Spec.Node, node.Name())
	}
	list := make([]*edge.Placement, len(p.Spec.Services))
	for i := range p.Spec.Services {
		s := &p.Spec.Services[i]
		d, err := edge.NewDeployment(edge.DeploymentSpec{
			Name: Qualified(p.Namespace, p.Spec.Origin.Name), Org: s.Org, Service: s.Name, Pattern: p.Spec.Origin.Kind == api.KindDeploymentPattern,
		})
		if err != nil {
			return nil, err
		}
		list[i] = &edge.Placement{Node: node, Deployment: d, Placed: true,
			Decision: edge.Decision{Compatible: true, Version: s.Version, Arch: s.Arch, Namespace: s.TargetNamespace, Reason: edge.Fits}}
	}
	return list, nil
}
