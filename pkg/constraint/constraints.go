// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import "fmt"

// Constraints are expressions that have been read. All of them have to be satisfied; without any, every node satisfies them.
type Constraints struct {
	expressions []*node
	terms       int
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

// Parse reads expressions. An error is an *Error, about the first fault.
func Parse(expressions []string) (*Constraints, error) {
	return &Constraints{}, nil
}

// Satisfied says whether all expressions are satisfied by these properties. Nil constraints are satisfied by everything, and nil
// properties are none.
func (c *Constraints) Satisfied(properties *Properties) bool { return c.Failed(properties) < 0 }

// Failed is the index of the first expression that these properties do not satisfy, and -1 if they satisfy all.
func (c *Constraints) Failed(properties *Properties) int { return -1 }

// Names are the names of all properties that are compared, sorted, each once.
func (c *Constraints) Names() []string { return nil }

// Possible says whether some node could satisfy the constraints. The properties that fixed has are as they are there. All others are
// free: a node may have them with any value, or not have them. Those of them that are named in single are, where a node has them,
// text of one word, as namespaces are: no comma, no quotes, no space.
//
// False is certain: no such node can. True is not: see docs/edge-constraints.md for what is not seen.
func (c *Constraints) Possible(fixed *Properties, single ...string) bool { return true }

// Requires is what a node must have to satisfy the constraints, for an index: one of the branches has to hold. No branch at all means
// that no node satisfies them; a branch without requirements, that any node may. What it says is necessary and not sufficient: of the
// nodes that it allows, Satisfied has the last word.
func (c *Constraints) Requires() []Branch { return []Branch{nil} }

// Branch are requirements that have to hold together.
type Branch []Requirement

// Requirement is one property that a node must have.
type Requirement struct {
	// Name is the name of the property.
	Name string
	// Keys are what the property has to be equal to: it must have one of them among its own Keys. Without any, every value will do.
	Keys []string
}

// Allows says whether all requirements hold.
func (b Branch) Allows(properties *Properties) bool { return true }

// Warning is about an expression that can be read, and does something that its user hardly meant.
type Warning struct {
	// Expression is the index of the expression in its list, from 0. It is -1 if the warning is about all of them together.
	Expression int
	// Position is where in the expression, in characters, from 1; 0 if it is about the whole.
	Position int
	// Code is one word for machines.
	Code Code
	// Message is a sentence: what happens, and what to write instead.
	Message string
}

// Code names a kind of warning.
type Code string

// Lint says where expressions do what their user hardly meant. Of expressions that cannot be read, it says nothing: Parse does.
func Lint(expressions []string) []Warning { return nil }

type node struct{}
