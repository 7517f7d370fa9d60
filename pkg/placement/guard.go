// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
)

// afterPanic is the delay of the retry for a placement that could not be scheduled, if nothing changes.
const afterPanic = time.Minute

// schedule runs a placement. A panic caused by one placement must not block the others: that placement stays as it is.
func (j *Job) schedule(ctx context.Context) (result *run.Result, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			p := j.State.Placement
			result = &run.Result{Status: p.Status, Again: j.State.Now.Add(afterPanic)}
			err = fmt.Errorf("scheduling the Placement %s/%s: panic: %v\n%s", p.Namespace, p.Name, fault, debug.Stack())
		}
	}()
	return run.Schedule(ctx, j.Program, j.State), nil
}

// compiled returns the program of a placement. A panic caused by a spec must not end the process: such a placement counts as misconfigured, and
// Round returns the panic as an error once.
func (h *Scheduler) compiled(p *clusterv1beta1.Placement) (program *spec.Program) {
	defer func() {
		if fault := recover(); fault != nil {
			h.faults = append(h.faults, fmt.Errorf("compiling the Placement %s/%s: panic: %v\n%s", p.Namespace, p.Name, fault, debug.Stack()))
			program = spec.Misconfigured(&p.Spec,
				errors.New("the hub failed to process this spec, see the log of hub-controller-manager: change the spec, or ask an admin of the hub"))
		}
	}()
	return h.compile(&p.Spec)
}

// guarded returns the answer to a question about a placement. If it panics, it returns true, and the run of the placement reports the panic.
func guarded(question func() bool) (yes bool) {
	defer func() {
		if recover() != nil {
			yes = true
		}
	}()
	return question()
}
