// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package check answers DeployChecks: what a policy or a pattern would deploy to which nodes, and why not to the others. It is pure, and asks
// pkg/edge, as what deploys does. The hub answers with it, and so does the command line, for files that are on no hub yet.
//
// Which nodes and services there are, and which of them the user may see, is for those who ask: nothing that is not in the Question is in the
// answer.
package check

import "github.com/clusterhub/clusterhub/pkg/edge"

// Reasons besides those of pkg/edge.
const (
	// NodeNotFound: there is no such node, or the user may not get it.
	NodeNotFound edge.Reason = "NodeNotFound"
	// NotReached: the node is in none of the sets that are bound to the namespace.
	NotReached edge.Reason = "NotReached"
	// NodeUnreadable: the policy of the node cannot be read, so that it gets nothing.
	NodeUnreadable edge.Reason = "NodeUnreadable"
	// Unreadable: the policy or pattern, or one of its services, cannot be read. The warnings say what.
	Unreadable edge.Reason = "Unreadable"
	// PatternRefused: the pattern would be refused when it is written. The warnings say why.
	PatternRefused edge.Reason = "PatternRefused"
)

// messages are of these reasons, without the name of the node.
var messages = map[edge.Reason]string{
	NodeNotFound:   "there is no such node, or you may not get it",
	NotReached:     "it is in none of the sets that are bound to the namespace, so nothing of the namespace comes to it",
	NodeUnreadable: "its node policy cannot be read, and such a node gets nothing: write it anew",
	Unreadable:     "the policy or pattern, or one of its services, cannot be read: see the warnings",
	PatternRefused: "the pattern would be refused when it is written: see the warnings",
}

// Bounds of an answer, as its type says them.
const (
	// DefaultLimit is how many nodes are told of where the question does not say it.
	DefaultLimit = 500
	// MaxLimit is how many nodes are told of at most.
	MaxLimit = 1000

	mostWarnings, mostReasons, mostServices   = 32, 32, 32
	mostMessage, mostServiceMessage, mostWord = 1024, 4096, 63
)
