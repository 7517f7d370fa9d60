// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubtree makes trees of the objects of a hub: a set and its clusters, a cluster and what belongs to it, a placement and its results. It is
// pure: it takes objects and returns a tree. The callers that read the objects note what could not be read.
//
// An object is only Healthy if it was observed to be: one without a status of its agent is Unknown, and so is one whose cluster does not respond,
// whatever its last status was.
package hubtree

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeState is the state of an object.
type NodeState string

// The states, the best first.
const (
	Healthy NodeState = "Healthy"
	// Progressing: it is in progress, or waits for a decision.
	Progressing NodeState = "Progressing"
	// Unknown: it could not be read, or has no current status.
	Unknown   NodeState = "Unknown"
	Unhealthy NodeState = "Unhealthy"
)

var byBadness = []NodeState{Healthy, Progressing, Unknown, Unhealthy}

func badness(s NodeState) int { return slices.Index(byBadness, s) }

// The reasons that are not those of conditions.
const (
	// ReasonNotAccepted: the hub has not accepted the cluster.
	ReasonNotAccepted = "NotAccepted"
	// ReasonNotJoined: the agent of the cluster has no identity on the hub yet.
	ReasonNotJoined = "NotJoined"
	// ReasonDeleting: the object is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonNotTold: the agent has not reported the current generation of the object.
	ReasonNotTold = "NotTold"
	// ReasonStale: the object was healthy in the last report of its agent, which does not respond now.
	ReasonStale = "Stale"
	// ReasonNotSeen: the user may not see the object.
	ReasonNotSeen = "NotSeen"
	// ReasonNotFound: there is no such object.
	ReasonNotFound = "NotFound"
)

// Node is an object with what belongs to it, or a group of objects that are alike.
type Node struct {
	// Kind is the kind of the object. A condition and a manifest of a work have the kinds Condition and Manifest.
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	State     NodeState `json:"state"`
	// Reason, Message and Since are those of the condition that determines the state.
	Reason  string       `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
	Since   *metav1.Time `json:"since,omitempty"`
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
func (n *Node) Worst() NodeState {
	worst := n.State
	for _, c := range n.Children {
		if s := c.Worst(); badness(s) > badness(worst) {
			worst = s
		}
	}
	return worst
}

// Counts returns the number of children of a kind in each state.
func (n *Node) Counts(kind string) map[NodeState]int {
	counts := map[NodeState]int{}
	for _, c := range n.Children {
		if c.Kind == kind {
			counts[c.State] += max(1, c.of)
		}
	}
	return counts
}

// by sets the state of a node with the reason and message of a condition.
func (n *Node) by(state NodeState, c *metav1.Condition) {
	n.State, n.Reason, n.Message = state, c.Reason, c.Message
	n.Since = since(c.LastTransitionTime)
}

// because sets a state with a reason and message of its own.
func (n *Node) because(state NodeState, reason, message string) {
	n.State, n.Reason, n.Message, n.Since = state, reason, message, nil
}

func since(t metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// ofStatus returns the state of an object that is healthy if a condition is True.
func ofStatus(status metav1.ConditionStatus) NodeState {
	switch status {
	case metav1.ConditionTrue:
		return Healthy
	case metav1.ConditionFalse:
		return Unhealthy
	}
	return Unknown
}
