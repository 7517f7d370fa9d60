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

// Loop is how most tasks run: something is done again and again.
type Loop struct {
	// What says what is done, for the log, and Do does it. An error that was made by Over ends the loop.
	What string
	Do   func(context.Context) error
	// Interval is the time from one success to the next, less a jitter. After a failure it is tried again sooner, first after
	// a second, then less and less often.
	Interval func() time.Duration
	// Timeout is for one go.
	Timeout time.Duration
	// News asks for a go before its time; never less than Pause after the last.
	News  <-chan struct{}
	Pause time.Duration
	// Random is in [0, 1), for delays that spread.
	Random func() float64

	said repeat.Said
}

// Run goes on until the context ends, or Do says that the session is over.
func (l *Loop) Run(ctx context.Context) error {
	retry := repeat.Backoff{Shortest: time.Second, Random: l.Random}
	for ctx.Err() == nil {
		err := l.once(ctx)
		if over := (*overError)(nil); ctx.Err() != nil || errors.As(err, &over) {
			return err
		}
		l.said.Result(ctx, l.What, err)
		if err != nil {
			retry.Longest = l.Interval()
			wait := retry.Next()
			// A server that says when to come back knows why. It cannot make the agent stay away.
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

func (l *Loop) once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	return l.Do(ctx)
}

// idle waits for the next time, or for news.
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
