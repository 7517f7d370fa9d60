// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// in returns how long a number of sequential calls wait.
func (p *tokenBucket) in(t *testing.T, calls int) time.Duration {
	t.Helper()
	start := time.Now()
	for range calls {
		if err := p.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(start)
}

func TestPace_SlowsOnThrottlingAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		about := func(what string, got, want time.Duration) {
			t.Helper()
			if got < want*9/10 || got > want*11/10 {
				t.Errorf("%s: %s, want about %s", what, got, want)
			}
		}
		p := newPace()
		if got := p.in(t, 1000); got != 0 {
			t.Errorf("before AWS has throttled any, they wait for %s", got)
		}
		sent := time.Now()
		time.Sleep(time.Millisecond)
		p.throttled(sent)
		about("after a throttled call", p.in(t, 14), time.Second)
		time.Sleep(time.Hour)
		about("after an hour", p.in(t, 21), time.Second)

		// Of several calls that are throttled at once, only the first counts.
		sent = time.Now()
		time.Sleep(time.Millisecond)
		for range 30 {
			p.throttled(sent)
		}
		about("after a throttled burst", p.in(t, 14), time.Second)
		for range 100 {
			time.Sleep(time.Millisecond)
			p.throttled(time.Now())
		}
		about("whatever is throttled", p.in(t, 1), 2*time.Second)
	})
}

func TestPace_CancelledCallDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		for range 100 {
			time.Sleep(time.Millisecond)
			p.throttled(time.Now())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		waits := make(chan error, 2)
		for range 2 { // the second waits for the first
			go func() { waits <- p.wait(ctx) }()
		}
		for range 2 {
			if err := <-waits; !errors.Is(err, errThrottled) {
				t.Errorf("it ends with %v", err)
			}
		}
		p.in(t, 1)
	})
}
