// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/clusterhub/clusterhub/pkg/command"
)

const (
	pollInterval = 500 * time.Millisecond
	// quietFor is the time for which a wait prints nothing.
	quietFor = 2 * time.Second
	// repeatAfter is the interval at which a wait prints again what it waits for.
	repeatAfter = 30 * time.Second
)

// waiting are the flags of a command that can wait.
type waiting struct {
	wait    bool
	timeout time.Duration
}

func (w *waiting) addWait(fs *pflag.FlagSet, until string) {
	fs.BoolVar(&w.wait, "wait", w.wait, "Wait until "+until+".")
	w.addTimeout(fs)
}

func (w *waiting) addTimeout(fs *pflag.FlagSet) {
	fs.DurationVar(&w.timeout, "timeout", 5*time.Minute, "How long to wait in total, above 0.")
}

func (w *waiting) validateTimeout() error {
	if w.timeout <= 0 {
		return fmt.Errorf("--timeout must be above 0, not %s", w.timeout)
	}
	return nil
}

// limit bounds all waits of a command together.
func (w *waiting) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, w.timeout, fmt.Errorf("not within --timeout=%s", w.timeout))
}

// await calls look until it is done. look returns the current state, or an error. A temporary error does not end the wait.
func (g *global) await(ctx context.Context, what string, check func(context.Context) (done bool, state string, err error)) error {
	started := time.Now()
	var saidAt time.Time
	said, state := "", ""
	for {
		done, now, err := check(ctx)
		switch {
		case done:
			return nil
		case err != nil && mayPass(err):
			now = err.Error()
		case err != nil && ctx.Err() == nil:
			return err
		}
		if ctx.Err() == nil { // the last poll may have been interrupted
			state = command.Printable(now)
		}
		if time.Since(started) >= quietFor && (state != said || time.Since(saidAt) >= repeatAfter) {
			_, _ = fmt.Fprintf(g.ErrOut, "Waiting for %s%s ... (%s)\n", what, after(": ", state), time.Since(started).Round(time.Second))
			said, saidAt = state, time.Now()
		}
		timer := time.NewTimer(cmp.Or(g.poll, pollInterval))
		select {
		case <-ctx.Done():
			timer.Stop()
			why := context.Cause(ctx)
			if errors.Is(why, context.Canceled) {
				why = errors.New("interrupted")
			}
			return fmt.Errorf("waiting for %s: %w%s", what, why, after(": ", state))
		case <-timer.C:
		}
	}
}

func after(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}
