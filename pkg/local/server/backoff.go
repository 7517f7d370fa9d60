// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import "time"

// A process that exits is restarted at once, then after firstBackoff, and twice as long each time up to lastBackoff, until it has run for goodRun.
const (
	firstBackoff = time.Second
	lastBackoff  = 30 * time.Second
	goodRun      = time.Minute
)

// Backoff determines when a process that has exited is restarted.
type Backoff struct {
	failures int
	// NotBefore is the time of the next start.
	NotBefore time.Time
}

// Ended plans the next start of a process that was started at started and has exited at at.
func (b *Backoff) Ended(started, at time.Time) {
	if at.Sub(started) > goodRun {
		b.failures = 0
	}
	b.NotBefore = at
	if b.failures > 0 {
		b.NotBefore = at.Add(min(firstBackoff<<min(b.failures-1, 10), lastBackoff))
	}
	b.failures++
}
