// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubtree makes trees of what is on a hub: a set and its clusters, a cluster and what belongs to it, a placement and
// what became of it. It is pure: objects in, a tree out. What reads the objects says what was not to be seen.
//
// Nothing is taken for healthy that was not seen to be: an object that its agent has not told of is Unknown, and so is one
// whose cluster is silent, whatever was told of it before.
package hubtree

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// State is how an object is.
type State string

// The states, the best first.
const (
	Healthy State = "Healthy"
	// Progressing: it is on its way, or waits for a decision.
	Progressing State = "Progressing"
	// Unknown: it was not seen, or not told of lately.
	Unknown   State = "Unknown"
	Unhealthy State = "Unhealthy"
)

var byBadness = []State{Healthy, Progressing, Unknown, Unhealthy}

func badness(s State) int { return slices.Index(byBadness, s) }

// The reasons that are not those of conditions.
const (
	// ReasonNotAccepted: the hub does not let the agent of the cluster in.
	ReasonNotAccepted = "NotAccepted"
	// ReasonNotJoined: the agent of the cluster has no identity on the hub yet.
	ReasonNotJoined = "NotJoined"
	// ReasonDeleting: the object is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonNotTold: the agent has not told of the object as it is now.
	ReasonNotTold = "NotTold"
	// ReasonStale: the object was healthy when its agent last told of it, and the agent is silent now.
	ReasonStale = "Stale"
	// ReasonNotSeen: the user may not see the object.
	ReasonNotSeen = "NotSeen"
	// ReasonNotFound: there is no such object.
	ReasonNotFound = "NotFound"
)

// Node is an object with what belongs to it, or a group of objects that are alike.
type Node struct {
	// Kind is that of the object. A condition and a manifest of a work have the kinds Condition and Manifest.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	State     State  `json:"state"`
	// Reason, Message and Since are those of the condition that decides about the state.
	Reason  string       `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
	Since   *metav1.Time `json:"since,omitempty"`
	// Conditions are those of the object.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Unseen says what belongs to the object and is not shown to the user, and why.
	Unseen   []string `json:"unseen,omitempty"`
	Children []*Node  `json:"children,omitempty"`

	// of is how many objects a group has, names are those of the first of them. more: they are like those before.
	of    int
	names []string
	more  bool
}

// Add adds children, but for those that are nil.
func (n *Node) Add(children ...*Node) {
	for _, c := range children {
		if c != nil {
			n.Children = append(n.Children, c)
		}
	}
}

// Worst is the worst state in the tree.
func (n *Node) Worst() State {
	worst := n.State
	for _, c := range n.Children {
		if s := c.Worst(); badness(s) > badness(worst) {
			worst = s
		}
	}
	return worst
}

// Counts are how many of the children of a kind have which state.
func (n *Node) Counts(kind string) map[State]int {
	counts := map[State]int{}
	for _, c := range n.Children {
		if c.Kind == kind {
			counts[c.State] += max(1, c.of)
		}
	}
	return counts
}

// by gives a node the state that a condition decides about.
func (n *Node) by(state State, c *metav1.Condition) {
	n.State, n.Reason, n.Message = state, c.Reason, c.Message
	n.Since = since(c.LastTransitionTime)
}

// because gives a node a state that is decided here.
func (n *Node) because(state State, reason, message string) {
	n.State, n.Reason, n.Message, n.Since = state, reason, message, nil
}

func since(t metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// ofStatus is the state of what is healthy when a condition is True.
func ofStatus(status metav1.ConditionStatus) State {
	switch status {
	case metav1.ConditionTrue:
		return Healthy
	case metav1.ConditionFalse:
		return Unhealthy
	}
	return Unknown
}
