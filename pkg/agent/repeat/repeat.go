// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package repeat has what all retries of the agent share: delays with jitter, and a log that stays short.
package repeat

import (
	"context"
	"time"
)

// jitterShare is the fraction by which a delay may be shortened, so that agents that started together spread.
const jitterShare = 0.25

// Jittered shortens a delay by up to a quarter; it never lengthens one. random returns a number in [0, 1).
func Jittered(d time.Duration, random func() float64) time.Duration {
	return d - time.Duration(jitterShare*random()*float64(d))
}

// Sleep waits, and reports whether the context has not ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Backoff returns delays that double from Shortest to Longest.
type Backoff struct {
	Shortest, Longest time.Duration
	// Random returns a number in [0, 1), for jitter.
	Random func() float64

	current time.Duration
}

// Next returns the next delay, less its jitter.
func (b *Backoff) Next() time.Duration {
	b.current = min(max(b.current*2, b.Shortest), b.Longest)
	return Jittered(b.current, b.Random)
}

// Reset makes the next delay the shortest.
func (b *Backoff) Reset() { b.current = 0 }
