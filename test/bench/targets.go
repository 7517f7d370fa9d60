// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// target is a goal for a result.
type target struct {
	Part    string `json:"part"`
	What    string `json:"what"`
	Want    string `json:"want"`
	Got     string `json:"got"`
	Reached bool   `json:"reached"`
}

// targets are goals with what was measured.
type targets []target

// reach adds a target, and whether it was reached.
func (t *targets) reach(part, what, want, got string, reached bool) {
	*t = append(*t, target{part, what, want, got, reached})
}

// atLeast adds a target for a factor that must be at least as wanted.
func (t *targets) atLeast(part, what string, want, got float64) {
	t.reach(part, what, fmt.Sprintf("at least %.4gx", want), fmt.Sprintf("%.4gx", got), got >= want)
}

// atMost adds a target for a value that must be at most as wanted.
func (t *targets) atMost(part, what, unit string, want, got float64) {
	t.reach(part, what, fmt.Sprintf("at most %.2f%s", want, unit), fmt.Sprintf("%.2f%s", got, unit), got <= want)
}

// none adds a target for a number that must be 0.
func (t *targets) none(part, what string, got int) {
	t.reach(part, what, "none", fmt.Sprint(got), got == 0)
}
