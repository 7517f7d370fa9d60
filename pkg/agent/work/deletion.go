// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/memory"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/work/order"
)

// stepTimeout bounds how long a step of a deletion delays the next steps.
const stepTimeout = 5 * time.Minute

// deletion holds when each step of a deletion started, and which objects are gone. It is not persisted: after a restart the timeouts start again.
type deletion struct {
	timeout time.Duration

	mu    sync.Mutex // the worker of a work and evict may delete the objects of one record concurrently
	since map[int]time.Time
	gone  sets.Set[apply.Target]
}

// setGone records that an object is gone.
func (d *deletion) setGone(t apply.Target) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone == nil {
		d.gone = sets.New[apply.Target]()
	}
	d.gone.Insert(t)
}

// isGone reports whether an object was found to be gone since the deletion started.
func (d *deletion) isGone(t apply.Target) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone.Has(t)
}

// holds reports whether the remaining objects of a step delay the next steps.
func (d *deletion) holds(step int, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since == nil {
		d.since = map[int]time.Time{}
	}
	since, ok := d.since[step]
	if !ok {
		d.since[step], since = now, now
	}
	return now.Sub(since) < d.timeout
}

// reset resets the timeouts, after all steps are complete.
func (d *deletion) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.since = nil
}

// stepsOf returns the steps in which resources are deleted, as indices.
func stepsOf(resources []memory.AppliedResource) [][]int {
	objects := make([]order.Object, len(resources))
	for i, r := range resources {
		objects[i] = order.Object{GroupResource: r.GroupResource(), Name: r.Name}
	}
	return order.Delete(objects)
}

// recordAndPrune records the UIDs of the applied objects, and prunes those that the spec no longer lists. It reports whether some of the pruned objects still
// exist.
func (a *Agent) recordAndPrune(ctx context.Context, work *workv1.ManifestWork, s *state, items []*item) (left bool, err error) {
	var resources, dropped []memory.AppliedResource
	for _, known := range s.record.Resources {
		if isWanted(known.Target, items) {
			resources = append(resources, s.recorded(known))
		} else {
			dropped = append(dropped, known)
		}
	}
	if len(dropped) > 0 {
		if err := a.hub.isCurrent(ctx, work); err != nil {
			return false, err
		}
	}
	keep := sets.New(s.record.Owner.Target())
	for _, one := range items {
		if one.target && one.refused == nil {
			keep.Insert(one.manifest.Target)
			if last := s.manifests[one.manifest.Target]; last != nil && last.awaits.Name != "" {
				keep.Insert(last.awaits)
			}
		}
	}
	var failed error
	held := false
	for step, indices := range stepsOf(dropped) {
		waits := false
		for _, i := range indices {
			one, gone := dropped[i], false
			if !held {
				var err error
				gone, err = a.deleteOrOrphan(ctx, work.Name, s.record.Owner, one, a.stays(work.Spec.DeleteOption, one.Target))
				if err != nil {
					failed = errors.Join(failed, fmt.Errorf("deleting %s: %w", one.Target, err))
				}
			}
			if !gone {
				resources, left, waits = append(resources, one), true, true
				keep.Insert(one.Target) // its deletion is an event
			} else {
				delete(s.manifests, one.Target)
			}
		}
		held = held || waits && s.pruning.holds(step, time.Now())
	}
	if !left {
		s.pruning.reset()
	}
	a.Drift.Retain(work.Name, keep)
	if err := a.Memory.SetResources(ctx, s.record, resources); err != nil {
		s.record = nil
		return left, err
	}
	a.Drift.Seen(s.record.Owner.Target(), s.record.Version())
	return left, failed
}

// recorded returns the record of an object with the version and the UID that were last read.
func (s *state) recorded(resource memory.AppliedResource) memory.AppliedResource {
	for t, last := range s.manifests {
		if t.Is(resource.Target) && last.uid != "" {
			return memory.AppliedResource{Target: t, UID: last.uid}
		}
	}
	return resource
}
