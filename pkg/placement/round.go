// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/placement/fleet"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
	"k8s.io/apimachinery/pkg/types"
)

// Job is a placement to be scheduled. State.Load is set by Round.
type Job struct {
	Program *spec.Program
	State   run.Snapshot
	// Later reports whether the placement is left to a later round. It is called when its turn comes, and may be nil.
	Later func() bool
}

// Round schedules placements, the older ones first, and calls done with each result. The load of each includes those before it in this round, and
// the last decisions of the others. So the outcome depends on which placements are in the round, and not on the order of the changes. It ends early
// if done fails. The error includes those of placements that could not be scheduled.
func Round(ctx context.Context, loads *fleet.Loads, jobs []Job, done func(Job, *run.Result) error) error {
	jobs = slices.SortedFunc(slices.Values(jobs), func(a, b Job) int {
		x, y := a.State.Placement, b.State.Placement
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time),
			strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	})
	var failed []error
	for _, job := range jobs {
		if job.Later != nil && job.Later() {
			continue
		}
		key := types.NamespacedName{Namespace: job.State.Placement.Namespace, Name: job.State.Placement.Name}
		job.State.Load = loads.Others(key)
		result, err := job.schedule(ctx)
		failed = append(failed, err)
		if err == nil && !result.Disabled {
			loads.Set(key, result.Clusters)
		}
		if err := done(job, result); err != nil {
			return errors.Join(append(failed, err)...)
		}
	}
	return errors.Join(failed...)
}
