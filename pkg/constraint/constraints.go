// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"fmt"
	"slices"
)

// Constraints are expressions that have been read. All of them have to be satisfied; without any, every node satisfies them.
type Constraints struct {
	expressions []*node
}

// node is a part of an expression.
type node struct {
	kind     nodeKind
	children []*node
	term     *term
	// position is where a comparison begins, or where an operand is missing: in characters, from 1.
	position int
	// after is the operator, or the parenthesis, after which an operand is missing; none in an empty expression.
	after string
}

type nodeKind int

const (
	// leaf is a comparison.
	leaf nodeKind = iota
	both
	either
	// empty is an operand that is missing. It is true.
	empty
)

// only is the one child of a node that has no others, and else the node.
func (n *node) only() *node {
	if len(n.children) == 1 {
		return n.children[0]
	}
	return n
}

// walk visits all comparisons and all missing operands, from left to right.
func (n *node) walk(visit func(*node)) {
	if n.kind == leaf || n.kind == empty {
		visit(n)
	}
	for _, child := range n.children {
		child.walk(visit)
	}
}

func (n *node) satisfied(properties *Properties) bool {
	switch n.kind {
	case leaf:
		return n.term.satisfied(properties.get(n.term.name))
	case both:
		for _, child := range n.children {
			if !child.satisfied(properties) {
				return false
			}
		}
		return true
	case either:
		for _, child := range n.children {
			if child.satisfied(properties) {
				return true
			}
		}
		return false
	}
	return true
}

// Satisfied says whether all expressions are satisfied by these properties. Nil constraints are satisfied by everything, and nil
// properties are none.
func (c *Constraints) Satisfied(properties *Properties) bool { return c.Failed(properties) < 0 }

// Failed is the index of the first expression that these properties do not satisfy, and -1 if they satisfy all.
func (c *Constraints) Failed(properties *Properties) int {
	if c == nil {
		return -1
	}
	for i, expression := range c.expressions {
		if !expression.satisfied(properties) {
			return i
		}
	}
	return -1
}

// Names are the names of all properties that are compared, sorted, each once.
func (c *Constraints) Names() []string {
	if c == nil {
		return nil
	}
	var names []string
	for _, expression := range c.expressions {
		expression.walk(func(n *node) {
			if n.kind == leaf {
				names = append(names, n.term.name)
			}
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Error says why an expression cannot be read.
type Error struct {
	// Expression is the index of the expression in its list, from 0. It is -1 if the list itself is too long.
	Expression int
	// Position is where in the expression, in characters, from 1. It is 0 if the error is about the whole.
	Position int
	// Expected is what could have been there.
	Expected string
	// Found is what is there.
	Found string
}

// Error is one sentence.
func (e *Error) Error() string {
	switch {
	case e.Expression < 0:
		return fmt.Sprintf("expected %s, found %s", e.Expected, e.Found)
	case e.Position == 0:
		return fmt.Sprintf("expression %d: expected %s, found %s", e.Expression+1, e.Expected, e.Found)
	}
	return fmt.Sprintf("expression %d, character %d: expected %s, found %s", e.Expression+1, e.Position, e.Expected, e.Found)
}
