// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"math"
	"slices"
	"strings"
)

// maxSteps limits the number of comparisons that Possible checks: beyond it, Possible returns true.
const maxSteps = 100_000

// Possible reports whether some node could satisfy the constraints. The properties in fixed have the given values. All others are free: a node may
// have them with any value, or not have them. The values of those that are named in single are, if a node has them, text of one word, as namespaces
// are: no comma, no quotes, no space.
//
// False is certain: no such node can. True is certain except for three cases that are not detected: constraints that no float64 between two
// neighbors satisfies, lists whose every element is excluded, and expressions with so many alternatives that the search is given up.
func (c *Constraints) Possible(fixed *Properties, single ...string) bool {
	if c == nil {
		return true
	}
	s := &search{fixed: fixed, single: single, chosen: map[string][]*term{}, steps: maxSteps}
	return s.solve(&goals{nodes: leavesFirst(c.expressions)})
}

// leavesFirst returns nodes that must all be true, with comparisons first: what these exclude is then not tried in each alternative.
func leavesFirst(nodes []*exprNode) []*exprNode {
	var leaves, others []*exprNode
	for _, n := range nodes {
		switch n.kind {
		case leaf:
			leaves = append(leaves, n)
		case both:
			for _, inner := range leavesFirst(n.children) {
				if inner.kind == leaf {
					leaves = append(leaves, inner)
				} else {
					others = append(others, inner)
				}
			}
		case either:
			others = append(others, n)
		}
	}
	return append(leaves, others...)
}

// search looks for one alternative of each "either", so that the comparisons of each free property can be true at once.
type search struct {
	fixed  *Properties
	single []string
	chosen map[string][]*term
	steps  int
}

// goals are nodes that must be true, and after them those of next.
type goals struct {
	nodes []*exprNode
	next  *goals
}

func (s *search) solve(open *goals) bool {
	s.steps--
	if s.steps < 0 {
		return true
	}
	for open != nil && len(open.nodes) == 0 {
		open = open.next
	}
	if open == nil {
		return true
	}
	first, rest := open.nodes[0], &goals{nodes: open.nodes[1:], next: open.next}
	switch first.kind {
	case empty:
		return s.solve(rest)
	case both:
		return s.solve(&goals{nodes: leavesFirst(first.children), next: rest})
	case either:
		return slices.ContainsFunc(first.children, func(child *exprNode) bool {
			return s.solve(&goals{nodes: []*exprNode{child}, next: rest})
		})
	}
	name := first.term.name
	if v := s.fixed.get(name); v != nil {
		return first.term.satisfied(v) && s.solve(rest)
	}
	before := s.chosen[name]
	s.chosen[name] = append(slices.Clip(before), first.term)
	defer func() { s.chosen[name] = before }()
	s.steps -= cost(s.chosen[name])
	if s.steps < 0 {
		return true
	}
	return feasible(s.chosen[name], slices.Contains(s.single, name)) && s.solve(rest)
}

// cost returns the approximate maximum number of comparisons of feasible.
func cost(terms []*term) int {
	parts := 1
	for _, t := range terms {
		parts = max(parts, len(t.parts))
	}
	return parts * len(terms)
}

// feasible reports whether one value could satisfy all of these comparisons. False is certain.
func feasible(terms []*term, single bool) bool {
	if single {
		return feasibleText(terms, true)
	}
	return feasibleNumber(terms) || allSatisfied(terms, &value{kind: boolean}) || allSatisfied(terms, &value{kind: boolean, boolean: true}) ||
		feasibleText(terms, false) || feasibleVersion(terms) || feasibleList(terms)
}

func allSatisfied(terms []*term, v *value) bool {
	return !slices.ContainsFunc(terms, func(t *term) bool { return !t.satisfied(v) })
}

// feasibleNumber checks the numbers between two bounds, which are excluded or not.
func feasibleNumber(terms []*term) bool {
	low, high, lowExcluded, highExcluded := -math.MaxFloat64, math.MaxFloat64, false, false
	for _, t := range terms {
		if !t.isNumber || math.IsNaN(t.number) && t.operator != notEqual {
			return false
		}
		switch t.operator {
		case equal, reversed, in:
			return !math.IsInf(t.number, 0) && allSatisfied(terms, &value{kind: number, number: t.number})
		case greater, greaterOrEqual:
			if t.number > low || t.number == low && t.operator == greater {
				low, lowExcluded = t.number, t.operator == greater
			}
		case less, lessOrEqual:
			if t.number < high || t.number == high && t.operator == less {
				high, highExcluded = t.number, t.operator == less
			}
		}
	}
	if low == high && !lowExcluded && !highExcluded {
		return allSatisfied(terms, &value{kind: number, number: low})
	}
	return low < high
}

// feasibleText checks text that is declared as neither a version nor a list.
func feasibleText(terms []*term, single bool) bool {
	ranges := []*versionRange{}
	var equals, within *term
	for _, t := range terms {
		switch {
		case t.operator == in && t.isRange:
			ranges = append(ranges, t.span)
			within = t
		case t.operator == in:
			// It is one of the parts, then, and nothing else.
			return feasiblePart(terms, t, single)
		case t.operator == equal:
			equals = t
		case t.operator != notEqual:
			return false
		}
	}
	switch {
	case within != nil && feasiblePart(terms, within, single):
		// Text that is not a version is in a range, too, if it is the text before or after the comma there.
		return true
	case equals != nil && (single || within != nil):
		// Neither a version nor a single word contains a comma, so it is equal to at most one text.
		return (!single || isSingle(equals.text)) && allSatisfied(terms, newText(equals.text, String))
	case within != nil:
		return overlap(ranges)
	}
	// Text with commas is equal to all its parts at once, and to none of them for "!=".
	return true
}

// feasiblePart reports whether the text can be one of the parts of t, with or without quotes around it.
func feasiblePart(terms []*term, t *term, single bool) bool {
	return slices.ContainsFunc(t.parts, func(part string) bool {
		if single {
			return isSingle(part) && allSatisfied(terms, newText(part, String))
		}
		return allSatisfied(terms, newText(part, String)) || allSatisfied(terms, newText(`"`+part+`"`, String))
	})
}

func isSingle(text string) bool { return text != "" && !strings.ContainsAny(text, "\", \t") }

// feasibleVersion checks text that is declared as a version.
func feasibleVersion(terms []*term) bool {
	var ranges []*versionRange
	for _, t := range terms {
		switch t.operator {
		case equal:
			return strictVersion(t.text) && allSatisfied(terms, newText(t.text, Version))
		case in:
			if t.span == nil {
				return false
			}
			ranges = append(ranges, t.span)
		case notEqual:
		default:
			return false
		}
	}
	return overlap(ranges)
}

// overlap reports whether a version may be in all of these ranges.
func overlap(ranges []*versionRange) bool {
	all := &versionRange{low: &version{}, high: &version{infinite: true}}
	for i, one := range ranges {
		if i == 0 {
			all = one
		}
		all = all.and(one)
	}
	return !all.empty()
}

// feasibleList checks text that is declared as a list. It may have any elements.
func feasibleList(terms []*term) bool {
	excluded := map[string]bool{}
	for _, t := range terms {
		if t.operator == notEqual {
			excluded[t.needle] = true
		}
	}
	return !slices.ContainsFunc(terms, func(t *term) bool {
		return t.operator != equal && t.operator != notEqual && t.operator != in || t.operator == equal && excluded[t.needle]
	})
}
