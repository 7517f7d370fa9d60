// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package constraint reads the constraint expressions of edge policies, and evaluates them against the properties of a node or of a
// service. The language is that of Open Horizon: docs/edge-constraints.md explains it for users.
//
// It is pure. Parse reads the expressions once, within bounds. What it returns, and what NewProperties returns, never changes: both can be
// used by several goroutines at once. Evaluating (Satisfied, Failed) allocates nothing and is linear in the number of comparisons, besides
// the length of lists.
//
// Three other questions are answered of the same tree: can any node satisfy it (Possible), what must a node have, for an index (Requires),
// and where does the language do something that its user hardly meant (Lint).
package constraint

// Bounds of what is read. What is beyond them is refused.
const (
	// MaxExpressions is how many expressions a list may have.
	MaxExpressions = 100
	// MaxExpressionLength is how long one expression may be, in bytes.
	MaxExpressionLength = 4096
	// MaxTerms is how many comparisons all expressions of a list may have together.
	MaxTerms = 512
	// MaxDepth is how deep parentheses may be nested.
	MaxDepth = 32
	// MaxProperties is how many properties a node, or a service, may have.
	MaxProperties = 1000
	// MaxNameLength is how long the name of a property may be, in bytes.
	MaxNameLength = 253
	// MaxValueLength is how long a text may be that is the value of a property, in bytes.
	MaxValueLength = 4096
	// MaxRangeLength is how long a range of versions may be that is no part of an expression, in bytes.
	MaxRangeLength = 128
)
