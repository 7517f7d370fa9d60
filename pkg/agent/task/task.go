// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package task is what a session of an agent runs: a list of tasks, each with its name and its rights.
package task

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
)

// longestPause is the longest time until a task that has failed is started again.
const longestPause = 5 * time.Minute

// Task is one thing that an agent does while it has an identity on the hub. It knows no other task: what they have to tell each
// other is in hub.View, so that each can run without the others, and without their rights.
type Task struct {
	// Name says what the task does, such as "renewing the lease".
	Name string
	// Rights are what it needs beside those of the agent's state.
	Rights rights.Rights
	// Run does it until the context ends, and then returns soon. An error made by Over ends the session. With any other error the
	// task is started again, after a pause. A task that returns nil has nothing left to do in the session.
	Run func(context.Context, Session) error
}

// Session is the time in which one identity is good, and what tasks work with in it.
type Session struct {
	Hub *hub.Hub
	// State is the agent's state as it was when the session began.
	State state.State
	// Random is in [0, 1), for delays that spread.
	Random func() float64
}

// overError is that the session is at its end.
type overError struct{ why error }

func (e *overError) Error() string { return fmt.Sprintf("the session is over: %v", e.why) }

func (e *overError) Unwrap() error { return e.why }

// Over is the error of a task that ends the session: the identity is lost, or there is another; why may be nil.
func Over(why error) error { return &overError{why} }

// Run runs all tasks, until the context ends or one of them says that the session is over, and they have all returned. It returns
// why, or nil if there is nothing wrong.
func (s Session) Run(ctx context.Context, tasks []Task) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var running sync.WaitGroup
	for _, t := range tasks {
		running.Go(func() {
			var over *overError
			if err := s.keep(ctx, t); errors.As(err, &over) {
				end(over)
			}
		})
	}
	<-ctx.Done()
	running.Wait()
	var over *overError
	if errors.As(context.Cause(ctx), &over) {
		return over.why
	}
	return context.Cause(ctx)
}

// keep starts a task again as often as it fails. One that fails takes no other down.
func (s Session) keep(ctx context.Context, t Task) error {
	retry := repeat.Backoff{Shortest: time.Second, Longest: longestPause, Random: s.Random}
	for {
		began := time.Now()
		err := s.once(ctx, t)
		var over *overError
		if err == nil || errors.As(err, &over) || ctx.Err() != nil {
			return err
		}
		if time.Since(began) > longestPause {
			retry.Reset()
		}
		pause := retry.Next()
		klog.FromContext(ctx).Error(err, "A task has failed: it is started again", "task", t.Name, "after", pause)
		if !repeat.Sleep(ctx, pause) {
			return nil
		}
	}
}

// once makes an error of a panic: that a task is wrong is no reason to leave the hub without a lease.
func (s Session) once(ctx context.Context, t Task) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return t.Run(ctx, s)
}
