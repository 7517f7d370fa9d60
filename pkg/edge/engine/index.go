// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/clusterhub/clusterhub/pkg/constraint"
	"github.com/clusterhub/clusterhub/pkg/edge"
)

// nodeIndex maps property names and keys to the nodes that have them.
type nodeIndex map[string]map[string]map[*parsedNode]bool

func (x nodeIndex) add(n *parsedNode, now *edge.Node) {
	properties := now.Properties()
	for _, p := range properties.All() {
		keys := x[p.Name]
		if keys == nil {
			keys = map[string]map[*parsedNode]bool{}
			x[p.Name] = keys
		}
		for _, key := range properties.Keys(p.Name) {
			if keys[key] == nil {
				keys[key] = map[*parsedNode]bool{}
			}
			keys[key][n] = true
		}
	}
}

func (x nodeIndex) remove(n *parsedNode, was *edge.Node) {
	properties := was.Properties()
	for _, p := range properties.All() {
		keys := x[p.Name]
		for _, key := range properties.Keys(p.Name) {
			delete(keys[key], n)
			if len(keys[key]) == 0 {
				delete(keys, key)
			}
		}
		if len(keys) == 0 {
			delete(x, p.Name)
		}
	}
}

// smallest returns the lists of the requirement of a branch that the fewest nodes satisfy, and an upper bound for their number. found is false if no
// requirement has keys.
func (x nodeIndex) smallest(branch constraint.Branch) (lists []map[*parsedNode]bool, most int, found bool) {
	for _, requirement := range branch {
		if len(requirement.Keys) == 0 {
			continue
		}
		var these []map[*parsedNode]bool
		sum := 0
		for _, key := range requirement.Keys {
			if list := x[requirement.Name][key]; len(list) > 0 {
				these, sum = append(these, list), sum+len(list)
			}
		}
		if !found || sum < most {
			lists, most, found = these, sum, true
		}
	}
	return lists, most, found
}

// candidates calls f with each node of the namespace that cannot be ruled out for a deployment, at least once.
func (e *Engine) candidates(d *deployment, f func(*parsedNode)) {
	nodes := d.namespace.nodes
	if d.key.Pattern {
		list := e.byPattern[d.specs[0].Name]
		for n := range list {
			if nodes[n] > 0 {
				f(n)
			}
		}
		return
	}
	var lists []map[*parsedNode]bool
	most := 0
	for _, branch := range d.branches {
		these, sum, found := e.index.smallest(branch)
		most += sum
		if !found || most >= len(nodes) {
			// The namespace has fewer nodes.
			for n := range nodes {
				if d.admits(n) {
					f(n)
				}
			}
			return
		}
		lists = append(lists, these...)
	}
	for _, list := range lists {
		for n := range list {
			if nodes[n] > 0 && d.admits(n) {
				f(n)
			}
		}
	}
}

// admits reports whether the node cannot be ruled out. It depends on the properties that the constraints name, and on the pattern.
func (d *deployment) admits(n *parsedNode) bool {
	if d.key.Pattern {
		return n.now.Pattern() == d.specs[0].Name
	}
	if n.now.Pattern() != "" {
		return false
	}
	for _, branch := range d.branches {
		if branch.Allows(n.now.Properties()) {
			return true
		}
	}
	return false
}
