// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import "time"

// Part is what is timed.
type Part string

// The parts of a run.
const (
	// TimeRun is all of it.
	TimeRun Part = "run"
	// TimeFilter and TimePrioritizer are those of a plugin, for all clusters.
	TimeFilter      Part = "filter"
	TimePrioritizer Part = "prioritizer"
	// TimeCEL is all expressions of a run.
	TimeCEL Part = "cel"
)

// Timing is told how long the parts of runs take. It may be nil, and nothing depends on it.
type Timing func(part Part, plugin string, took time.Duration)

// of times a part until what it returns is called.
func (t Timing) of(part Part, plugin string) (end func()) {
	if t == nil {
		return func() {}
	}
	begun := time.Now()
	return func() { t(part, plugin, time.Since(begun)) }
}

// timed is the name of a prioritizer that metrics have: users choose those of scores.
func (p *prioritizer) timed() string {
	if p.resource != "" {
		return "AddOn"
	}
	return p.name
}
