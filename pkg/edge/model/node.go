// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/constraint"
	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

// Node returns a node of this name. Facts that its agent has not reported stay unknown.
func Node(name string, spec *api.EdgeNodeSpec, status *api.EdgeNodeStatus) edge.NodeSpec {
	node := edge.NodeSpec{
		Name: name, Type: edge.Type(spec.NodeType), Pattern: spec.Pattern, Policy: policy(&spec.Policy), Deployment: policy(spec.Deployment),
		Facts: edge.Facts{
			Arch: status.Arch, KubernetesVersion: status.KubernetesVersion, Namespace: status.Namespace, ClusterID: status.ClusterID,
			ClusterObjects: objects(status.ClusterObjects),
		},
	}
	if node.Type == "" {
		// This is the default of the field, for objects that were not read from the server.
		node.Type = edge.Cluster
	}
	if status.CPU != nil {
		node.Facts.CPU = *status.CPU
	}
	if status.Memory != nil {
		node.Facts.Memory = *status.Memory
	}
	if scoped := status.NamespaceScoped; scoped != nil {
		node.Facts.Scope = edge.ClusterScoped
		if *scoped {
			node.Facts.Scope = edge.NamespaceScoped
		}
	}
	return node
}

func policy(p *api.Policy) edge.Policy {
	if p == nil {
		return edge.Policy{}
	}
	read := edge.Policy{Constraints: p.Constraints}
	for i := range p.Properties {
		property := &p.Properties[i]
		read.Properties = append(read.Properties, constraint.Property{Name: property.Name, Value: property.Value.Any(), Type: constraint.Type(property.Type)})
	}
	return read
}

// objects converts cluster-scoped objects.
func objects(list []api.ClusterScopedObject) []archive.Object {
	var read []archive.Object
	for _, o := range list {
		read = append(read, archive.Object{Group: o.Group, Kind: o.Kind, Name: o.Name, Scope: archive.Cluster})
	}
	return read
}
