// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var b Backoff
	var got []time.Duration
	for range 8 { // it exits at once each time
		b.Ended(now, now)
		got = append(got, b.NotBefore.Sub(now))
		now = b.NotBefore
	}
	want := []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}
	if !slices.Equal(got, want) {
		t.Errorf("it is started again after %v, want %v", got, want)
	}
	b.Ended(now, now.Add(goodRun+time.Second))
	if after := b.NotBefore.Sub(now); after != goodRun+time.Second {
		t.Errorf("after a good run it is started again %s after its start", after)
	}
}
