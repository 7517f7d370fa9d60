// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"fmt"
	"slices"
)

// Constraints are parsed expressions. All of them must be satisfied; without any, every node satisfies them.
type Constraints struct {
	expressions []*exprNode
}

// exprNode is a part of an expression.
type exprNode struct {
	kind     nodeKind
	children []*exprNode
	term     *term
	// position is where a comparison begins, or where an operand is missing: in characters, from 1.
	position int
	// after is the operator, or the parenthesis, after which an operand is missing; it is empty for an empty expression.
	after string
}

type nodeKind int

const (
	// leaf is a comparison.
	leaf nodeKind = iota
	both
	either
	// empty is a missing operand. It is true.
	empty
)

// only returns the child of a node with a single child, and otherwise the node.
func (n *exprNode) only() *exprNode {
	if len(n.children) == 1 {
		return n.children[0]
	}
	return n
}

// walk visits all comparisons and all missing operands, from left to right.
func (n *exprNode) walk(visit func(*exprNode)) {
	if n.kind == leaf || n.kind == empty {
		visit(n)
	}
	for _, child := range n.children {
		child.walk(visit)
	}
}

func (n *exprNode) satisfied(properties *Properties) bool {
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

// Satisfied reports whether these properties satisfy all expressions. Nil constraints are always satisfied, and nil properties are empty.
func (c *Constraints) Satisfied(properties *Properties) bool { return c.Failed(properties) < 0 }

// Failed returns the index of the first expression that these properties do not satisfy, or -1 if they satisfy all.
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

// Names returns the names of all compared properties, sorted, without duplicates.
func (c *Constraints) Names() []string {
	if c == nil {
		return nil
	}
	var names []string
	for _, expression := range c.expressions {
		expression.walk(func(n *exprNode) {
			if n.kind == leaf {
				names = append(names, n.term.name)
			}
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Error is a syntax error of an expression.
type Error struct {
	// Expression is the index of the expression in its list, from 0. It is -1 if the list itself is too long.
	Expression int
	// Position is the position in the expression, in characters, from 1. It is 0 if the error is about the whole.
	Position int
	// Expected describes what was expected there.
	Expected string
	// Found is the text that was found.
	Found string
}

// Error returns the error as one sentence.
func (e *Error) Error() string {
	switch {
	case e.Expression < 0:
		return fmt.Sprintf("expected %s, found %s", e.Expected, e.Found)
	case e.Position == 0:
		return fmt.Sprintf("expression %d: expected %s, found %s", e.Expression+1, e.Expected, e.Found)
	}
	return fmt.Sprintf("expression %d, character %d: expected %s, found %s", e.Expression+1, e.Position, e.Expected, e.Found)
}
