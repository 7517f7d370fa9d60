// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package constraint parses the constraint expressions of edge policies, and evaluates them against the properties of a node or of a service. The
// language comes from Open Horizon: docs/edge.md explains it for users.
//
// It is pure. Parse parses the expressions once, within limits. The results of Parse and NewProperties are immutable, and safe for concurrent use.
// Evaluation (Satisfied, Failed) allocates nothing and is linear in the number of comparisons, besides the length of lists.
//
// The same tree answers three other questions: whether any node can satisfy it (Possible), what a node must have, for an index (Requires), and
// where an expression probably has a different meaning than its author intended (Lint).
package constraint

// The limits of expressions and properties. Input beyond them is refused.
const (
	// MaxExpressions is the maximum number of expressions in a list.
	MaxExpressions = 100
	// MaxExpressionLength is the maximum length of one expression, in bytes.
	MaxExpressionLength = 4096
	// MaxTerms is the maximum number of comparisons in all expressions of a list together.
	MaxTerms = 512
	// MaxDepth is the maximum depth of nested parentheses.
	MaxDepth = 32
	// MaxProperties is the maximum number of properties of a node or a service.
	MaxProperties = 1000
	// MaxNameLength is the maximum length of the name of a property, in bytes.
	MaxNameLength = 253
	// MaxValueLength is the maximum length of a text that is the value of a property, in bytes.
	MaxValueLength = 4096
	// MaxRangeLength is the maximum length of a range of versions outside of an expression, in bytes.
	MaxRangeLength = 128
)
