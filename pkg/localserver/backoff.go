// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package localserver

import "time"

// A process that ends is started again at once, then after firstBackoff, and twice as long each time up to lastBackoff, until it has run for
// goodRun.
const (
	firstBackoff = time.Second
	lastBackoff  = 30 * time.Second
	goodRun      = time.Minute
)

// Backoff says when a process that has ended is started again.
type Backoff struct {
	failures int
	// NotBefore is when.
	NotBefore time.Time
}

// Ended plans the next start of a process that was started at one time and has ended at another.
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
