// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diagnosis says what is wrong with a hub and what is on it, why, whose turn it is, and what to do. It is pure:
// objects in, findings out. What reads the objects gives each check what the user may see, and says what was not to be seen.
package diagnosis

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Severity is how bad a finding is.
type Severity string

// The severities, the worst first.
const (
	// Error: something does not work.
	Error Severity = "Error"
	// Warning: something works and will not do so for long, or works otherwise than its users would expect.
	Warning Severity = "Warning"
)

// A Finding is one thing that is wrong.
type Finding struct {
	// ID is one of IDs. It stays the same from release to release, so that programs can know a finding by it.
	ID       ID       `json:"id"`
	Severity Severity `json:"severity"`
	// Object is what it is about, such as "managedcluster/paris-1" or "apiservice/v1.cluster.open-cluster-management.io".
	Object string `json:"object,omitempty"`
	// Cause is a sentence, or a few: what was expected, and what there is.
	Cause string `json:"cause"`
	// Turn is whose turn it is, such as "an admin of the hub" or "the agent of paris-1".
	Turn string `json:"turn,omitempty"`
	// Since is when it began, as far as the objects say so.
	Since *metav1.Time `json:"since,omitempty"`
	// Fix are commands to paste, in order; what they cannot know is written <LIKE THIS>.
	Fix []string `json:"fix,omitempty"`
}

// Link leads to the page that explains the finding, from the root of the documentation.
func (f Finding) Link() string { return "docs/findings.md#" + f.ID.anchor() }

// A Step is one link of a chain, such as "accepted": when one is broken, those after it do not matter.
type Step struct {
	// Name is a word or two, such as "accepted".
	Name  string `json:"name"`
	State State  `json:"state"`
	// Text says what was found, for people.
	Text string `json:"text,omitempty"`
}

// State is what is known of a step.
type State string

// The states of a step. What could not be seen is not taken for right.
const (
	Passed     State = "Passed"
	Broken     State = "Broken"
	Unseen     State = "Unseen"
	NotReached State = "NotReached"
)

// An Answer says why something is as it is: a chain of steps of which the first broken one is the cause.
type Answer struct {
	// Verdict is the answer in a sentence.
	Verdict string `json:"verdict"`
	Steps   []Step `json:"steps,omitempty"`
	// Finding is about the first step that is broken; there is none when all is well.
	Finding *Finding `json:"finding,omitempty"`
	// Unseen says what the user may not see and which would have been looked at.
	Unseen []string `json:"unseen,omitempty"`
}

// A Report is what was found when everything was looked at.
type Report struct {
	Findings []Finding `json:"findings"`
	// Checked are the names of the checks that were made.
	Checked []string `json:"checked"`
	// Unseen says what could not be looked at, and why.
	Unseen []string `json:"unseen,omitempty"`
}

// Sort puts the worst first, and what is alike in the order of its names.
func (r *Report) Sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Object, b.Object))
	})
}

// Worst is the severity of the worst finding, empty without one.
func (r *Report) Worst() Severity {
	worst := Severity("")
	for _, f := range r.Findings {
		if worst == "" || rank(f.Severity) < rank(worst) {
			worst = f.Severity
		}
	}
	return worst
}

func rank(s Severity) int {
	if s == Error {
		return 0
	}
	return 1
}
