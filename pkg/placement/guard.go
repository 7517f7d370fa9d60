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

// compiled is the program of a placement. A fault of ours that a spec brings to light must not end the process: such a placement cannot
// be followed, and Round tells of the fault once.
func (h *Hub) compiled(p *clusterv1beta1.Placement) (program *Program) {
	defer func() {
		if fault := recover(); fault != nil {
			h.faults = append(h.faults, fmt.Errorf("compiling the Placement %s/%s: panic: %v\n%s", p.Namespace, p.Name, fault, debug.Stack()))
			program = &Program{clusterSets: p.Spec.ClusterSets,
				misconfigured: errors.New("a fault of the hub keeps this spec from being followed; its log says more: change the spec, or ask an admin of the hub")}
		}
	}()
	return h.compile(&p.Spec)
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
