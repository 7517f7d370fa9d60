// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/constraint"
)

// This file has what a decision depends on, for pkg/edge/engine, so that it does not have to call Decide for every node.

// Requires returns what a node must have to satisfy the constraints of a policy: one of these branches. A pattern has one without requirements.
func (d *Deployment) Requires() []constraint.Branch { return d.constraints.Requires() }

// Names returns the names of all properties of nodes that a decision depends on, sorted and without duplicates.
func (d *Deployment) Names() []string {
	if d.spec.Pattern {
		return nil
	}
	names := d.constraints.Names()
	for i := range d.candidates {
		for j := range d.candidates[i].services {
			names = append(names, d.candidates[i].services[j].constraints.Names()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Found reports whether a service exists for any of the versions that are named.
func (d *Deployment) Found() bool {
	return slices.ContainsFunc(d.candidates, func(c candidate) bool { return len(c.services) > 0 })
}

// RuledOut returns the reason of Decide for any node of the same class that does not satisfy the constraints of the policy, or runs another pattern.
// It depends only on the class.
func RuledOut(n *Node, d *Deployment) Reason {
	if reason, _ := d.selects(n); reason != Fits {
		return reason
	}
	first := d.candidates[0].before(n, d)
	if first.reason == Fits {
		return PolicyConstraint
	}
	return first.reason
}

// Class returns all of a node that a decision depends on, except its properties and constraints: nodes of one class only differ in these.
func (n *Node) Class() string {
	class := fmt.Sprintf("%q %q %q %q %q", n.nodeType, n.pattern, n.facts.Arch, n.facts.Scope, n.facts.Namespace)
	if n.facts.Scope != NamespaceScoped || len(n.clusterObjects) == 0 {
		return class
	}
	objects := make([]string, 0, len(n.clusterObjects))
	for o := range n.clusterObjects {
		objects = append(objects, fmt.Sprintf("%q %q %q", o.Group, o.Kind, o.Name))
	}
	slices.Sort(objects)
	return class + " " + strings.Join(objects, " ")
}

// Pattern returns the name of the pattern that the node runs, or "".
func (n *Node) Pattern() string { return n.pattern }

// Type returns the type of the node.
func (n *Node) Type() Type { return n.nodeType }

// Changed returns the names of the properties in which two nodes differ, and whether they are the same in all else that decisions depend on,
// including cluster and constraints.
func (n *Node) Changed(other *Node) (names []string, same bool) {
	same = n.name == other.name && n.Class() == other.Class() && n.clusterID() == other.clusterID() && slices.Equal(n.rules, other.rules)
	mine, theirs := n.properties.All(), other.properties.All()
	had := make(map[string]constraint.Property, len(mine))
	for _, p := range mine {
		had[p.Name] = p
	}
	for _, p := range theirs {
		if before, there := had[p.Name]; !there || before != p {
			names = append(names, p.Name)
		}
		delete(had, p.Name)
	}
	for name := range had {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, same
}
