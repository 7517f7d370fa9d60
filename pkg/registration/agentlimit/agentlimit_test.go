// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agentlimit

import (
	"testing"
	"testing/synctest"
	"time"
)

var limit = Limit{PerSecond: 0.5, Burst: 10}

// Counts are dropped when they do not matter any more, and not before.
func TestLimiter_RetainsRelevantCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(limit)
		for range limit.Burst {
			l.Accept("c1")
		}
		for range 4 {
			time.Sleep(limit.refill()/2 - time.Second)
			passed := 0
			for l.Accept("c1") {
				passed++
			}
			if passed > limit.Burst/2 {
				t.Errorf("%d writes after half of the time, want %d at most", passed, limit.Burst/2)
			}
		}
	})
}

func TestLimiter_CountsPerCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, none := New(limit), New(Limit{Burst: 1})
		for i := range 100 {
			if got := l.Accept("c1"); got != (i < limit.Burst) {
				t.Errorf("%d times at once: %t", i+1, got)
			}
			if !none.Accept("c1") {
				t.Fatal("without a limit it was refused")
			}
		}
		if !l.Accept("c2") {
			t.Error("another cluster's agents wait for those of the first")
		}
		time.Sleep(time.Duration(limit.Wait()) * time.Second)
		if !l.Accept("c1") || l.Accept("c1") {
			t.Error("after the wait they may do it once")
		}
	})
}
