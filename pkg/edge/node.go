// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"fmt"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/constraint"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

// Type is the type of a node.
type Type string

const (
	// Cluster is a node that is a Kubernetes cluster, or a namespace of one.
	Cluster Type = "cluster"
	// Device is a node that is not a cluster. All rules apply to it, too, but it has no namespaces.
	Device Type = "device"
)

// Scope is the scope of an agent's rights.
type Scope string

const (
	// ScopeNotKnown is the scope of an agent that has not reported it.
	ScopeNotKnown Scope = ""
	// ClusterScoped agents deploy to any namespace.
	ClusterScoped Scope = "cluster"
	// NamespaceScoped agents deploy only to the namespace that they are in.
	NamespaceScoped Scope = "namespace"
)

// DefaultNamespace is the namespace of an agent that was installed without one.
const DefaultNamespace = "openhorizon-agent"

// LegacyNamespace returns the namespace of a node's record of Open Horizon: a record without a namespace is older than namespaces. It is for imported
// records. A fact that an agent has not reported stays unknown.
func LegacyNamespace(recorded string) string {
	if recorded == "" {
		return DefaultNamespace
	}
	return recorded
}

// Facts are the known facts of a node. A zero value means that a fact is not known.
type Facts struct {
	Arch string
	// CPU is the number of cores.
	CPU int64
	// Memory is in MB.
	Memory            int64
	KubernetesVersion string
	// Namespace is the namespace that the agent is in.
	Namespace string
	Scope     Scope
	// ClusterID is the ID of the Kubernetes cluster, and the same for all agents in it.
	ClusterID string
	// ClusterObjects are cluster-scoped objects that are known to exist in the cluster.
	ClusterObjects []archive.Object
}

// Policy has the properties that an owner sets, and the constraints on the other side.
type Policy struct {
	Properties  []constraint.Property
	Constraints []string
}

// NodeSpec is a node as its owner wrote it, and its facts.
type NodeSpec struct {
	Name string
	Type Type
	// Pattern is the name of the pattern that the node runs, or empty.
	Pattern string
	Policy  Policy
	// Deployment overrides Policy for deployments: each property, and the constraints if there are any.
	Deployment Policy
	Facts      Facts
}

// Node is a parsed node.
type Node struct {
	name, pattern string
	nodeType      Type
	facts         Facts
	properties    *constraint.Properties
	constraints   *constraint.Constraints
	// rules are the constraints as they are written.
	rules          []string
	clusterObjects map[archive.Object]bool
}

// NewNode parses a node. An error reports which property or constraint cannot be parsed; nothing is deployed to such a node.
func NewNode(spec NodeSpec) (*Node, error) {
	n := &Node{name: spec.Name, pattern: spec.Pattern, nodeType: spec.Type, facts: spec.Facts}
	var err error
	n.properties, err = stamp(nodeProperties(&spec), spec.Facts.properties(spec.Type))
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", spec.Name, err)
	}
	constraints := spec.Deployment.Constraints
	if len(constraints) == 0 {
		constraints = spec.Policy.Constraints
	}
	n.rules = constraints
	n.constraints, err = constraint.Parse(constraints)
	if err != nil {
		return nil, fmt.Errorf("node %s: constraints: %w", spec.Name, err)
	}
	n.clusterObjects = make(map[archive.Object]bool, len(spec.Facts.ClusterObjects))
	for _, o := range spec.Facts.ClusterObjects {
		n.clusterObjects[identity(o)] = true
	}
	return n, nil
}

// nodeProperties returns the properties that the owner sets, with the default of a cluster for privileged services.
func nodeProperties(spec *NodeSpec) []constraint.Property {
	allow := []constraint.Property{{Name: api.PropertyAllowPrivileged, Value: spec.Type == Cluster, Type: constraint.Boolean}}
	return overlay(allow, overlay(spec.Policy.Properties, spec.Deployment.Properties))
}

// identity returns the parts of an object that do not depend on its namespace.
func identity(o archive.Object) archive.Object {
	return archive.Object{Group: o.Group, Kind: o.Kind, Name: o.Name}
}

// Name returns the name of the node.
func (n *Node) Name() string { return n.name }

// Properties returns the properties that constraints are compared with, including built-in ones.
func (n *Node) Properties() *constraint.Properties { return n.properties }

// clusterID identifies the cluster that the node is in, or the node itself if that is not known.
func (n *Node) clusterID() string {
	if n.facts.ClusterID == "" {
		return "node/" + n.name
	}
	return "cluster/" + n.facts.ClusterID
}
