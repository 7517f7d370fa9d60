// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import "slices"

// maxBranches is the maximum number of branches that Requires returns. If there were more, it returns weaker requirements.
const maxBranches = 64

// Branch are requirements that must hold together.
type Branch []Requirement

// Requirement is one property that a node must have.
type Requirement struct {
	// Name is the name of the property.
	Name string
	// Keys are the accepted keys of the property: one of them must be among Properties.Keys. If it is empty, any value is accepted.
	Keys []string
}

// Allows reports whether all requirements hold.
func (b Branch) Allows(properties *Properties) bool {
	for _, requirement := range b {
		if properties.get(requirement.Name) == nil {
			return false
		}
		if len(requirement.Keys) > 0 && !slices.ContainsFunc(properties.Keys(requirement.Name), func(key string) bool {
			return slices.Contains(requirement.Keys, key)
		}) {
			return false
		}
	}
	return true
}

// Requires returns what a node must have to satisfy the constraints, for an index: the requirements of at least one of the branches. There is
// always a branch. A branch without requirements is the only one, and means that any node may satisfy the constraints. The requirements are
// necessary and not sufficient: Satisfied decides on the nodes that a branch allows.
//
// A node whose properties of these names have not changed is allowed by the same branches as before.
func (c *Constraints) Requires() []Branch {
	if c == nil {
		return []Branch{nil}
	}
	return (&exprNode{kind: both, children: c.expressions}).requires()
}

func (n *exprNode) requires() []Branch {
	switch n.kind {
	case leaf:
		return []Branch{{{Name: n.term.name, Keys: n.term.keys()}}}
	case both:
		// Comparisons first: their requirements are then copied once for each branch, and not once more for each of them.
		var simple Branch
		for _, child := range n.children {
			if child.kind == leaf {
				simple = append(simple, child.requires()[0]...)
			}
		}
		branches := []Branch{simple}
		for _, child := range n.children {
			if child.kind != leaf {
				branches = together(branches, child.requires())
			}
		}
		return branches
	case either:
		var branches []Branch
		for _, child := range n.children {
			branches = append(branches, child.requires()...)
			if len(branches) > maxBranches {
				branches = []Branch{common(branches)}
			}
		}
		if slices.ContainsFunc(branches, func(b Branch) bool { return len(b) == 0 }) {
			return []Branch{nil}
		}
		return branches
	}
	return []Branch{nil}
}

// together returns a branch for each pair, or fewer if that would be too many.
func together(some, others []Branch) []Branch {
	for len(some)*len(others) > maxBranches {
		if len(some) > len(others) {
			some = []Branch{common(some)}
		} else {
			others = []Branch{common(others)}
		}
	}
	var pairs []Branch
	for _, one := range some {
		for _, other := range others {
			pairs = append(pairs, append(slices.Clip(one), other...))
		}
	}
	return pairs
}

// common returns what all branches require: the names that each of them has, with the keys that any of them has.
func common(branches []Branch) Branch {
	var all Branch
	for _, candidate := range branches[0] {
		if slices.ContainsFunc(all, func(r Requirement) bool { return r.Name == candidate.Name }) {
			continue
		}
		if requirement, everywhere := merge(branches, candidate.Name); everywhere {
			all = append(all, requirement)
		}
	}
	return all
}

// merge returns what branches require of one property, and whether each of them requires it.
func merge(branches []Branch, name string) (Requirement, bool) {
	merged, anyValue := Requirement{Name: name}, false
	for _, branch := range branches {
		i := slices.IndexFunc(branch, func(r Requirement) bool { return r.Name == name })
		if i < 0 {
			return merged, false
		}
		merged.Keys = append(merged.Keys, branch[i].Keys...)
		anyValue = anyValue || len(branch[i].Keys) == 0
	}
	if anyValue {
		merged.Keys = nil
	}
	merged.Keys = unique(merged.Keys)
	return merged, true
}
