// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import "fmt"

// target is a goal for a result.
type target struct {
	Part    string `json:"part"`
	What    string `json:"what"`
	Want    string `json:"want"`
	Got     string `json:"got"`
	Reached bool   `json:"reached"`
}

// Targets are goals with what was measured.
type Targets []target

// Add adds a target, and whether it was reached.
func (t *Targets) Add(part, what, want, got string, reached bool) {
	*t = append(*t, target{part, what, want, got, reached})
}

// AtLeast adds a target for a factor that must be at least as wanted.
func (t *Targets) AtLeast(part, what string, want, got float64) {
	t.Add(part, what, fmt.Sprintf("at least %.4gx", want), fmt.Sprintf("%.4gx", got), got >= want)
}

// AtMost adds a target for a value that must be at most as wanted.
func (t *Targets) AtMost(part, what, unit string, want, got float64) {
	t.Add(part, what, fmt.Sprintf("at most %.2f%s", want, unit), fmt.Sprintf("%.2f%s", got, unit), got <= want)
}

// None adds a target for a number that must be 0.
func (t *Targets) None(part, what string, got int) {
	t.Add(part, what, "none", fmt.Sprint(got), got == 0)
}
