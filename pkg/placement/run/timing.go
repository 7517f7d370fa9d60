// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import "time"

// Phase is a part of a run that is measured.
type Phase string

// The parts of a run.
const (
	// TimeRun is the whole run.
	TimeRun Phase = "run"
	// TimeFilter and TimePrioritizer are the parts of a plugin, for all clusters.
	TimeFilter      Phase = "filter"
	TimePrioritizer Phase = "prioritizer"
	// TimeCEL is the evaluation of all expressions of a run.
	TimeCEL Phase = "cel"
)

// Timing is called with the time that a part of a run has taken. It may be nil, and has no effect on the results.
type Timing func(part Phase, plugin string, took time.Duration)

// of measures a part until the returned function is called.
func (t Timing) of(part Phase, plugin string) (end func()) {
	if t == nil {
		return func() {}
	}
	begun := time.Now()
	return func() { t(part, plugin, time.Since(begun)) }
}
