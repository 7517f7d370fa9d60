// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"fmt"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/constraint"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

// Type is what a node is.
type Type string

const (
	// Cluster is a node that is a Kubernetes cluster, or a namespace of one.
	Cluster Type = "cluster"
	// Device is a node that is no cluster. All rules are for it, too, but nothing is in a namespace there.
	Device Type = "device"
)

// Scope is what an agent has rights in.
type Scope string

const (
	// ScopeNotKnown is the scope of an agent that has not told.
	ScopeNotKnown Scope = ""
	// ClusterScoped agents deploy into any namespace.
	ClusterScoped Scope = "cluster"
	// NamespaceScoped agents deploy only into the namespace that they are in.
	NamespaceScoped Scope = "namespace"
)

// DefaultNamespace is where an agent is that was installed without a namespace.
const DefaultNamespace = "openhorizon-agent"

// LegacyNamespace is the namespace that a node's record of Open Horizon stands for: one without a namespace is older than namespaces.
// It is for records that are imported. A fact that an agent has not told stays unknown.
func LegacyNamespace(recorded string) string {
	if recorded == "" {
		return DefaultNamespace
	}
	return recorded
}

// Facts are what is known of a node. A zero value says that it is not known.
type Facts struct {
	Arch string
	// CPU is in cores.
	CPU int64
	// Memory is in MB.
	Memory            int64
	KubernetesVersion string
	// Namespace is the one that the agent is in.
	Namespace string
	Scope     Scope
	// ClusterID is of the Kubernetes cluster, and the same for all agents in it.
	ClusterID string
	// ClusterObjects are objects of no namespace that are known to be in the cluster.
	ClusterObjects []archive.Object
}

// Policy is what the owner of something asks of the other side, and says of the own.
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
	// Deployment is laid over Policy for deployments: each property, and the constraints if there are any.
	Deployment Policy
	Facts      Facts
}

// Node is a node that was read.
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

// NewNode reads a node. An error says which property or constraint cannot be read; such a node gets nothing.
func NewNode(spec NodeSpec) (*Node, error) {
	n := &Node{name: spec.Name, pattern: spec.Pattern, nodeType: spec.Type, facts: spec.Facts}
	var err error
	if n.properties, err = stamp(nodeProperties(&spec), spec.Facts.properties(spec.Type)); err != nil {
		return nil, fmt.Errorf("node %s: %w", spec.Name, err)
	}
	constraints := spec.Deployment.Constraints
	if len(constraints) == 0 {
		constraints = spec.Policy.Constraints
	}
	n.rules = constraints
	if n.constraints, err = constraint.Parse(constraints); err != nil {
		return nil, fmt.Errorf("node %s: constraints: %w", spec.Name, err)
	}
	n.clusterObjects = make(map[archive.Object]bool, len(spec.Facts.ClusterObjects))
	for _, o := range spec.Facts.ClusterObjects {
		n.clusterObjects[identity(o)] = true
	}
	return n, nil
}

// nodeProperties are what the owner says, with what a cluster allows if the owner does not say it.
func nodeProperties(spec *NodeSpec) []constraint.Property {
	allow := []constraint.Property{{Name: api.PropertyAllowPrivileged, Value: spec.Type == Cluster, Type: constraint.Boolean}}
	return overlay(allow, overlay(spec.Policy.Properties, spec.Deployment.Properties))
}

// identity is what of an object is the same wherever it is.
func identity(o archive.Object) archive.Object {
	return archive.Object{Group: o.Group, Kind: o.Kind, Name: o.Name}
}

// Name of the node.
func (n *Node) Name() string { return n.name }

// Properties that constraints are compared with, built-in ones included.
func (n *Node) Properties() *constraint.Properties { return n.properties }

// clusterID is the cluster that the node is in, or the node itself where that is not known.
func (n *Node) clusterID() string {
	if n.facts.ClusterID == "" {
		return "node/" + n.name
	}
	return "cluster/" + n.facts.ClusterID
}
