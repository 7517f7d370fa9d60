// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package task defines the tasks that a session of an agent runs, each with its name and its rights.
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

// maxPause bounds the delay before a failed task is restarted.
const maxPause = 5 * time.Minute

// Task is one thing that an agent does while it has an identity on the hub. It does not depend on other tasks: they share data in hub.View, so that
// each can run without the others, and without their rights.
type Task struct {
	// Name describes the task, such as "renewing the lease".
	Name string
	// Rights are the rights that it needs beside those of the agent's state.
	Rights rights.Rights
	// Run runs the task until the context ends, and then returns soon. An error made by Over ends the session. After any other error the task is
	// restarted with a delay. A task that returns nil is done for the session.
	Run func(context.Context, Session) error
}

// Session is the time in which one identity is valid, with the data that tasks need in it.
type Session struct {
	Hub *hub.Hub
	// State is the agent's state at the start of the session.
	State state.State
	// Random returns a number in [0, 1), for jitter.
	Random func() float64
}

// overError reports that the session is over.
type overError struct{ why error }

func (e *overError) Error() string { return fmt.Sprintf("the session is over: %v", e.why) }

func (e *overError) Unwrap() error { return e.why }

// Over returns an error by which a task ends the session: the identity is lost, or a new one exists; why may be nil.
func Over(why error) error { return &overError{why} }

// Run runs all tasks until the context ends or one of them ends the session, and all have returned. It returns why, or nil if the session ended
// without an error.
func (s Session) Run(ctx context.Context, tasks []Task) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var running sync.WaitGroup
	for _, t := range tasks {
		running.Go(func() {
			var over *overError
			if err := s.restart(ctx, t); errors.As(err, &over) {
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

// restart restarts a task after each failure. The failure of one task does not affect the others.
func (s Session) restart(ctx context.Context, t Task) error {
	retry := repeat.Backoff{Shortest: time.Second, Longest: maxPause, Random: s.Random}
	for {
		began := time.Now()
		err := s.runTask(ctx, t)
		var over *overError
		if err == nil || errors.As(err, &over) || ctx.Err() != nil {
			return err
		}
		if time.Since(began) > maxPause {
			retry.Reset()
		}
		pause := retry.Next()
		klog.FromContext(ctx).Error(err, "A task has failed and will be restarted", "task", t.Name, "after", pause)
		if !repeat.Sleep(ctx, pause) {
			return nil
		}
	}
}

// runTask runs a task. It converts a panic to an error, so that a bug of one task does not stop the renewal of the lease.
func (s Session) runTask(ctx context.Context, t Task) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return t.Run(ctx, s)
}
