// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

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
	// PollInterval is the default interval of a wait.
	PollInterval = 500 * time.Millisecond
	// QuietFor is the time for which a wait prints nothing.
	QuietFor = 2 * time.Second
	// repeatAfter is the interval at which a wait prints again what it waits for.
	repeatAfter = 30 * time.Second
)

// WaitFlags are the flags of a command that can wait.
type WaitFlags struct {
	// Wait is the value of --wait, and Timeout that of --timeout.
	Wait    bool
	Timeout time.Duration
}

// AddWait adds --wait and --timeout.
func (w *WaitFlags) AddWait(fs *pflag.FlagSet, until string) {
	fs.BoolVar(&w.Wait, "wait", w.Wait, "Wait until "+until+".")
	w.AddTimeout(fs)
}

// AddTimeout adds --timeout to a command that always waits.
func (w *WaitFlags) AddTimeout(fs *pflag.FlagSet) {
	fs.DurationVar(&w.Timeout, "timeout", 5*time.Minute, "How long to wait in total, above 0.")
}

// ValidateTimeout rejects a time limit that is not positive.
func (w *WaitFlags) ValidateTimeout() error {
	if w.Timeout <= 0 {
		return fmt.Errorf("--timeout must be above 0, not %s", w.Timeout)
	}
	return nil
}

// Limit bounds all waits of a command together.
func (w *WaitFlags) Limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, w.Timeout, fmt.Errorf("not within --timeout=%s", w.Timeout))
}

// Await calls check until it is done. check returns the current state, or an error. A temporary error does not end the wait.
func (o *Options) Await(ctx context.Context, what string, check func(context.Context) (done bool, state string, err error)) error {
	started := time.Now()
	var saidAt time.Time
	said, state := "", ""
	for {
		done, now, err := check(ctx)
		switch {
		case done:
			return nil
		case err != nil && IsTemporary(err):
			now = err.Error()
		case err != nil && ctx.Err() == nil:
			return err
		}
		if ctx.Err() == nil { // the last poll may have been interrupted
			state = command.Printable(now)
		}
		if time.Since(started) >= QuietFor && (state != said || time.Since(saidAt) >= repeatAfter) {
			_, _ = fmt.Fprintf(o.ErrOut, "Waiting for %s%s ... (%s)\n", what, Prefixed(": ", state), time.Since(started).Round(time.Second))
			said, saidAt = state, time.Now()
		}
		timer := time.NewTimer(cmp.Or(o.PollInterval, PollInterval))
		select {
		case <-ctx.Done():
			timer.Stop()
			why := context.Cause(ctx)
			if errors.Is(why, context.Canceled) {
				why = errors.New("interrupted")
			}
			return fmt.Errorf("waiting for %s: %w%s", what, why, Prefixed(": ", state))
		case <-timer.C:
		}
	}
}
