// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
)

// Loop is how most tasks run: a function is called periodically.
type Loop struct {
	// What describes Do, for the log. An error of Do that was made by Over ends the loop.
	What string
	Do   func(context.Context) error
	// Interval returns the time from one success to the next call, less a jitter. Failures are retried sooner, first after a second, then with
	// exponential backoff.
	Interval func() time.Duration
	// Timeout bounds one call.
	Timeout time.Duration
	// News triggers a call before the interval has passed, but no sooner than Pause after the last.
	News  <-chan struct{}
	Pause time.Duration
	// Random returns a number in [0, 1), for jitter.
	Random func() float64

	said repeat.Said
}

// Run calls Do until the context ends, or Do ends the session.
func (l *Loop) Run(ctx context.Context) error {
	retry := repeat.Backoff{Shortest: time.Second, Random: l.Random}
	for ctx.Err() == nil {
		err := l.runOnce(ctx)
		if over := (*overError)(nil); ctx.Err() != nil || errors.As(err, &over) {
			return err
		}
		l.said.Result(ctx, l.What, err)
		if err != nil {
			retry.Longest = l.Interval()
			wait := retry.Next()
			// A server that suggests a delay has a reason. The delay is bounded by the interval.
			if seconds, said := apierrors.SuggestsClientDelay(err); said {
				wait = max(wait, min(time.Duration(seconds)*time.Second, l.Interval()))
			}
			if !repeat.Sleep(ctx, wait) {
				return nil
			}
			continue
		}
		retry.Reset()
		if !l.idle(ctx) {
			return nil
		}
	}
	return nil
}

func (l *Loop) runOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	return l.Do(ctx)
}

// idle waits for the next call, or for News.
func (l *Loop) idle(ctx context.Context) bool {
	wait := repeat.Jittered(l.Interval(), l.Random)
	pause := min(l.Pause, wait)
	if !repeat.Sleep(ctx, pause) {
		return false
	}
	timer := time.NewTimer(wait - pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-l.News:
	case <-timer.C:
	}
	return true
}
