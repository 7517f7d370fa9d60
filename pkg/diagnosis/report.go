// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import "fmt"

// check is one part of a report.
type check struct {
	name string
	find func() []Finding
}

// reportOf returns a report with the findings of the checks.
func reportOf(checks []check) *Report {
	r := &Report{Findings: []Finding{}}
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
	count := map[ID]int{}
	for _, f := range r.Findings {
		count[f.ID]++
	}
	counts, kept := map[ID]int{}, []Finding{}
	for _, f := range r.Findings {
		counts[f.ID]++
		switch n := counts[f.ID]; {
		case n <= most:
			kept = append(kept, f)
		case n == count[f.ID]:
			kept = append(kept, Finding{ID: f.ID, Severity: f.Severity, Turn: f.Turn,
				Cause: fmt.Sprintf("There are %d more like these.", n-most)})
		}
	}
	r.Findings = kept
}
