// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// afterPanic is when a placement that could not be scheduled is tried again without any change.
const afterPanic = time.Minute

// schedule runs a placement. A fault of ours that one placement brings to light must not hold up the others: that one stays as it is.
func (j *Job) schedule(ctx context.Context) (result *Result, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			p := j.State.Placement
			result = &Result{Status: p.Status, Again: j.State.Now.Add(afterPanic)}
			err = fmt.Errorf("scheduling the Placement %s/%s: panic: %v\n%s", p.Namespace, p.Name, fault, debug.Stack())
		}
	}()
	return j.Program.Schedule(ctx, j.State), nil
}

// guarded is the answer of a question about a placement. If it panics, the placement is run, and what is wrong is told there.
func guarded(question func() bool) (yes bool) {
	defer func() {
		if recover() != nil {
			yes = true
		}
	}()
	return question()
}
