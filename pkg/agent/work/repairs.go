// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"time"

	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
)

const (
	// freeRepairs is the number of repairs of an object that are done without a delay. After the next one, the object counts as contested by another
	// program.
	freeRepairs = 2
	// minRepair and maxRepair bound the delay before each repair of a contested object: at most 20 are done in an hour.
	minRepair, maxRepair = 10 * time.Second, 10 * time.Minute
	// quiet is for how long an object must stay as applied until it is no longer contested.
	quiet = 2 * maxRepair
)

// repairs are the changes of one object by other programs that the agent has undone since the object was last quiet. An agent that undid each of them
// at once would write as fast as the other program, forever.
type repairs struct {
	count      int
	last, next time.Time
	repair     apply.Repair
	delays     repeat.Backoff
}

// add counts a repair, and sets the time of the next one.
func (r *repairs) add(now time.Time, repair apply.Repair) {
	if now.Sub(r.last) >= quiet {
		r.reset()
	}
	r.count, r.last, r.repair = r.count+1, now, repair
	if r.count > freeRepairs {
		r.next = now.Add(r.delays.Next())
	}
}

// reset removes all repairs, after the manifest has changed.
func (r *repairs) reset() {
	r.count, r.last, r.next = 0, time.Time{}, time.Time{}
	r.delays.Reset()
}

// wait returns how long no repair may be done.
func (r *repairs) wait(now time.Time) time.Duration { return max(r.next.Sub(now), 0) }

// contested returns the fields that are contested, or "".
func (r *repairs) contested(now time.Time) string {
	if r.count <= freeRepairs || now.Sub(r.last) >= quiet {
		return ""
	}
	return r.repair.String() + " repeatedly, and the manifest is applied again with increasing delays: " +
		"remove it from the manifest, or stop the other program"
}
