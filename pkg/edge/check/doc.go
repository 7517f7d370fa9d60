// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package check answers DeployChecks: what a policy or a pattern would deploy to which nodes, and why not to the others. It is pure, and uses
// pkg/edge, as the controllers that deploy do. The hub answers with it, and so does the command line, for files that are on no hub yet.
//
// The caller determines which nodes and services exist, and which of them the user may see: the answer has nothing that is not in the Question.
package check

import "github.com/clusterhub/clusterhub/pkg/edge"

// Reasons besides those of pkg/edge.
const (
	// NodeNotFound: the node does not exist, or the user may not get it.
	NodeNotFound edge.Reason = "NodeNotFound"
	// NotReached: the node is in none of the sets that are bound to the namespace.
	NotReached edge.Reason = "NotReached"
	// NodeUnreadable: the policy of the node cannot be parsed, so that nothing is deployed to it.
	NodeUnreadable edge.Reason = "NodeUnreadable"
	// Unreadable: the policy or pattern, or one of its services, cannot be parsed. The warnings have the details.
	Unreadable edge.Reason = "Unreadable"
	// PatternRefused: the pattern would be rejected when it is written. The warnings have the reason.
	PatternRefused edge.Reason = "PatternRefused"
)

// messages are the messages of these reasons, without the name of the node.
var messages = map[edge.Reason]string{
	NodeNotFound:   "the node does not exist, or you may not get it",
	NotReached:     "it is in none of the sets that are bound to the namespace, so the namespace deploys nothing to it",
	NodeUnreadable: "its node policy cannot be read, so nothing is deployed to it: write it again",
	Unreadable:     "the policy or pattern, or one of its services, cannot be read: see the warnings",
	PatternRefused: "the pattern would be refused when it is written: see the warnings",
}

// The limits of an answer, as documented in its type.
const (
	// DefaultLimit is the number of nodes in an answer if the question does not set it.
	DefaultLimit = 500
	// MaxLimit is the maximum number of nodes in an answer.
	MaxLimit = 1000

	maxWarnings, maxReasons, maxServices   = 32, 32, 32
	maxMessage, maxServiceMessage, maxWord = 1024, 4096, 63
)
