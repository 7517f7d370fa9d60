// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/inspect"
)

const (
	// maxAlike is the maximum number of unhealthy children that are alike and shown with their children.
	maxAlike = 3
	// maxNames is the largest number of names that are shown of a group.
	maxNames = 3
)

// Fold returns a tree with what a reader looks for: healthy nodes are collapsed, and grouped by kind. Of unhealthy nodes that are alike, the first
// few are expanded. The order of kinds stays, and the worst nodes of each come first.
func Fold(n *Node) *Node {
	folded := *n
	folded.Children = nil
	if n.Worst() == inspect.Healthy {
		folded.Conditions = nil
	}
	var kinds []string
	of := map[string][]*Node{}
	for _, c := range n.Children {
		if n.Reason == inspect.ReasonStale && c.Reason == inspect.ReasonStale {
			continue // the parent has the same reason
		}
		if of[c.Kind] == nil {
			kinds = append(kinds, c.Kind)
		}
		of[c.Kind] = append(of[c.Kind], c)
	}
	for _, kind := range kinds {
		folded.Children = append(folded.Children, foldKind(of[kind])...)
	}
	return &folded
}

func foldKind(nodes []*Node) (shown []*Node) {
	healthy := &Node{}
	var bad []*Node
	for _, n := range nodes {
		if n.Worst() == inspect.Healthy {
			healthy.join(n)
		} else {
			bad = append(bad, n)
		}
	}
	slices.SortStableFunc(bad, func(a, b *Node) int { return b.Worst().Badness() - a.Worst().Badness() })
	seen, rest := map[string]int{}, map[string]*Node{}
	for _, n := range bad {
		folded := Fold(n)
		like := folded.likeness(false)
		seen[like]++
		if seen[like] <= maxAlike {
			shown = append(shown, folded)
			continue
		}
		if rest[like] == nil {
			rest[like] = &Node{more: true}
			shown = append(shown, rest[like])
		}
		rest[like].join(folded)
	}
	if healthy.of > 0 {
		shown = append(shown, healthy)
	}
	for _, n := range shown {
		n.single()
	}
	return shown
}

// join adds a node to a group. The first node gives the group its kind, state and reason.
func (n *Node) join(one *Node) {
	if n.of == 0 {
		more := n.more
		*n = *one
		n.more, n.names, n.of = more, slices.Clone(one.names), 0
		n.Conditions = nil
		if one.Worst() == inspect.Healthy {
			n.Children = nil
		}
	} else {
		n.Message, n.Since, n.Children, n.Unseen = "", nil, nil, nil
		if one.Worst() != n.Worst() || one.Reason != n.Reason {
			n.Reason = ""
		}
	}
	if one.of > 0 {
		n.of += one.of
	} else {
		n.of++
		n.names = append(n.names, one.Name)
	}
	if len(n.names) > maxNames {
		n.names = n.names[:maxNames]
	}
}

// single replaces a group with one member by the member itself.
func (n *Node) single() {
	if n.of == 1 {
		n.of, n.names, n.more = 0, nil, false
	}
}

// Close is like Fold, and drops the children of a healthy node.
func Close(n *Node) *Node {
	n = Fold(n)
	if n.Worst() == inspect.Healthy {
		n.Children = nil
	}
	return n
}

// likeness returns a text that is equal for nodes with the same kinds, states and reasons. Messages may differ.
func (n *Node) likeness(named bool) string {
	var b strings.Builder
	n.writeLikeness(&b, named)
	return b.String()
}

func (n *Node) writeLikeness(b *strings.Builder, named bool) {
	b.WriteString(n.Kind + "|" + string(n.State) + "|" + n.Reason + "|")
	if named {
		b.WriteString(n.Namespace + "/" + n.Name)
	}
	b.WriteString("(")
	for _, c := range n.Children {
		// The namespaces of all clusters contain the same names.
		if c.of == 0 {
			(&Node{Kind: c.Kind, Name: c.Name, Health: c.Health, Children: c.Children}).writeLikeness(b, true)
		} else {
			b.WriteString(c.Kind + "|" + string(c.State))
		}
	}
	b.WriteString(")")
}
