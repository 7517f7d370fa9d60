// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
)

// A Report is the result of all checks.
type Report struct {
	Findings []diagnosis.Finding `json:"findings"`
	// Checked are the names of the checks that were made.
	Checked []string `json:"checked"`
	// Unseen lists what could not be read, and why.
	Unseen []string `json:"unseen,omitempty"`
}

// Sort sorts findings by severity, the worst first, and then by ID and object.
func (r *Report) Sort() {
	slices.SortStableFunc(r.Findings, func(a, b diagnosis.Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Object, b.Object))
	})
}

// Worst returns the severity of the worst finding, or "".
func (r *Report) Worst() diagnosis.Severity {
	worst := diagnosis.Severity("")
	for _, f := range r.Findings {
		if worst == "" || rank(f.Severity) < rank(worst) {
			worst = f.Severity
		}
	}
	return worst
}

func rank(s diagnosis.Severity) int {
	if s == diagnosis.Error {
		return 0
	}
	return 1
}

// check is one part of a report.
type check struct {
	name string
	find func() []diagnosis.Finding
}

// reportOf returns a report with the findings of the checks.
func reportOf(checks []check) *Report {
	r := &Report{Findings: []diagnosis.Finding{}}
	for _, c := range checks {
		r.Checked = append(r.Checked, c.name)
		r.Findings = append(r.Findings, c.find()...)
	}
	r.Sort()
	r.limit(maxOfAKind)
	return r
}

// maxOfAKind is the largest number of findings of one kind in a report: a hub can have many lost clusters for one cause.
const maxOfAKind = 20

// limit keeps the first findings of each kind, and counts the others. The report must be sorted.
func (r *Report) limit(most int) {
	count := map[diagnosis.ID]int{}
	for _, f := range r.Findings {
		count[f.ID]++
	}
	counts, kept := map[diagnosis.ID]int{}, []diagnosis.Finding{}
	for _, f := range r.Findings {
		counts[f.ID]++
		switch n := counts[f.ID]; {
		case n <= most:
			kept = append(kept, f)
		case n == count[f.ID]:
			kept = append(kept, diagnosis.Finding{ID: f.ID, Severity: f.Severity, Turn: f.Turn,
				Cause: fmt.Sprintf("There are %d more like these.", n-most)})
		}
	}
	r.Findings = kept
}
