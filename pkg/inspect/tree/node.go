// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree makes trees of the objects of a hub: a set and its clusters, a cluster and what belongs to it, a placement and its results. It is
// pure: it takes objects and returns a tree. The callers that read the objects note what could not be read. The states of objects are those of package
// inspect; an object whose cluster does not respond is Unknown, whatever its last status was.
package tree

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/inspect"
)

// Node is an object with what belongs to it, or a group of objects that are alike.
type Node struct {
	// Kind is the kind of the object. A condition and a manifest of a work have the kinds Condition and Manifest.
	Kind           string `json:"kind"`
	Namespace      string `json:"namespace,omitempty"`
	Name           string `json:"name,omitempty"`
	inspect.Health `json:",inline"`
	// Conditions are the conditions of the object.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Unseen lists what belongs to the object and is not shown to the user, and why.
	Unseen   []string `json:"unseen,omitempty"`
	Children []*Node  `json:"children,omitempty"`

	// of is the number of objects in a group, and names are the names of the first of them. more reports whether the group has the rest of nodes that
	// are shown before it.
	of    int
	names []string
	more  bool
}

// Add adds children that are not nil.
func (n *Node) Add(children ...*Node) {
	for _, c := range children {
		if c != nil {
			n.Children = append(n.Children, c)
		}
	}
}

// Worst returns the worst state in the tree.
func (n *Node) Worst() inspect.HealthState {
	worst := n.State
	for _, c := range n.Children {
		if s := c.Worst(); s.Badness() > worst.Badness() {
			worst = s
		}
	}
	return worst
}

// Counts returns the number of children of a kind in each state.
func (n *Node) Counts(kind string) map[inspect.HealthState]int {
	counts := map[inspect.HealthState]int{}
	for _, c := range n.Children {
		if c.Kind == kind {
			counts[c.State] += max(1, c.of)
		}
	}
	return counts
}
