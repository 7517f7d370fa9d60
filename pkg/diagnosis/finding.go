// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diagnosis explains what is wrong with a hub and its objects, why, who must act, and what to do. It is pure: it takes objects and returns
// findings. The callers that read the objects pass what the user may see, and note what could not be read.
package diagnosis

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// A Report is the result of all checks.
type Report struct {
	Findings []Finding `json:"findings"`
	// Checked are the names of the checks that were made.
	Checked []string `json:"checked"`
	// Unseen lists what could not be read, and why.
	Unseen []string `json:"unseen,omitempty"`
}

// Sort sorts findings by severity, the worst first, and then by ID and object.
func (r *Report) Sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Object, b.Object))
	})
}

// Worst returns the severity of the worst finding, or "".
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
