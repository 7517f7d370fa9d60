// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diagnosis explains what is wrong with an object of a hub, or why a user may not do something: the cause, who must act, and what to do. It is
// pure: it takes objects and returns answers with findings. The callers that read the objects pass what the user may see, and note what could not be
// read.
package diagnosis

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ID identifies a kind of finding, in CamelCase like reasons of conditions. Each ID has a heading in docs/findings.md, and vice versa, as a test
// verifies. The constants are next to the checks that return them.
type ID string

// anchor returns the anchor of the ID's heading.
func (i ID) anchor() string { return strings.ToLower(string(i)) }

// Severity is the severity of a finding.
type Severity string

// The severities, the worst first.
const (
	// Error: something does not work.
	Error Severity = "Error"
	// Warning: something works and soon will not, or does not work as its users would expect.
	Warning Severity = "Warning"
)

// A Finding is one thing that is wrong.
type Finding struct {
	// ID is one of IDs. It stays the same from release to release, so that programs can identify a finding by it.
	ID       ID       `json:"id"`
	Severity Severity `json:"severity"`
	// Object is the object of the finding, such as "managedcluster/paris-1" or "apiservice/v1.cluster.open-cluster-management.io".
	Object string `json:"object,omitempty"`
	// Cause is a sentence, or a few: what was expected, and what was found.
	Cause string `json:"cause"`
	// Turn is who must act, such as "an admin of the hub" or "the agent of paris-1".
	Turn string `json:"turn,omitempty"`
	// Since is when it began, if the objects have that time.
	Since *metav1.Time `json:"since,omitempty"`
	// Fix are commands to paste, in order. Placeholders are written <LIKE THIS>.
	Fix []string `json:"fix,omitempty"`
}

// Link returns the link to the page that explains the finding, relative to the root of the documentation.
func (f Finding) Link() string { return "docs/findings.md#" + f.ID.anchor() }

// A Step is one link of a chain, such as "accepted". If one is broken, those after it do not matter.
type Step struct {
	// Name is a word or two, such as "accepted".
	Name  string    `json:"name"`
	State StepState `json:"state"`
	// Text describes the result for users.
	Text string `json:"text,omitempty"`
}

// StepState is the state of a step.
type StepState string

// The states of a step. What could not be read is not considered passed.
const (
	Passed     StepState = "Passed"
	Broken     StepState = "Broken"
	Unseen     StepState = "Unseen"
	NotReached StepState = "NotReached"
)

// An Answer explains the state of something: a chain of steps of which the first broken one is the cause.
type Answer struct {
	// Verdict is the answer in a sentence.
	Verdict string `json:"verdict"`
	Steps   []Step `json:"steps,omitempty"`
	// Finding is about the first broken step. It is nil if there is no problem.
	Finding *Finding `json:"finding,omitempty"`
	// Unseen lists what the user may not see and would have been checked.
	Unseen []string `json:"unseen,omitempty"`
}
