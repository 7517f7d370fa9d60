// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Group is a decision group of a placement.
type Group struct {
	Name     string
	Index    int
	Clusters []*ClusterProgress
}

// ClusterProgress is the state of a cluster.
type ClusterProgress struct {
	Name string
	// Current reports whether the cluster has the current version. Observation is about that.
	Current bool
	Observation
	// Written is the time at which it was written, and Succeeded the time at which it was first seen to succeed. They are recorded by the caller.
	Written, Succeeded time.Time
	// Leaving reports that the earlier work is being deleted, so nothing can be written yet.
	Leaving bool
	// Blocked is the reason why nothing may be written, if any. A current work is judged in any case.
	Blocked string
}

// ClusterState is the state of a cluster in a rollout.
type ClusterState string

const (
	// Writing means that the cluster must be written now.
	Writing ClusterState = "Writing"
	// Waiting means that the cluster is written later.
	Waiting ClusterState = "Waiting"
	// Blocked means that the cluster is not written, and the progress of others does not change that.
	Blocked ClusterState = "Blocked"
	// InProgress means that the cluster was written, and has not succeeded yet.
	InProgress ClusterState = "Progressing"
	// Failed means that the work has failed, and may still succeed within the deadline.
	Failed ClusterState = "Failed"
	// TimeOut means that the work has not succeeded within the deadline. It may still do so.
	TimeOut ClusterState = "TimeOut"
	// Soaking means that the work succeeds, for less than MinSuccessTime.
	Soaking ClusterState = "Soaking"
	// Succeeded means that the work succeeds.
	Succeeded ClusterState = "Succeeded"
)

// Outcome is the decision for a cluster.
type Outcome struct {
	Name  string
	State ClusterState
	// Waits names the thing that the cluster waits for, unless it is Writing or Succeeded.
	Waits string
}

// Plan has the next steps of a rollout.
type Plan struct {
	// Clusters are all clusters, by name.
	Clusters []Outcome
	// Write are the clusters to write, in this order.
	Write []string
	// Note are the clusters whose success must be recorded with the current time.
	Note []string
	// Next is the time of the next plan if nothing changes before, or zero for never.
	Next time.Time
	// Held is the reason why no more clusters are written although some wait, if any.
	Held string
	// Counts are the numbers of clusters in each state.
	Counts map[ClusterState]int
}

// Done reports whether all clusters have succeeded.
func (p *Plan) Done() bool { return p.Counts[Succeeded]+p.Counts[Soaking] == len(p.Clusters) }

// Decide computes a plan. A cluster that is in several groups, as it may be while it moves, counts for the last of them. If a strategy is invalid,
// which the caller must refuse, its limits are 0.
func Decide(s *Strategy, groups []Group, now time.Time) *Plan {
	r := &run{strategy: s, now: now, plan: &Plan{Counts: map[ClusterState]int{}}}
	all := r.members(groups)
	r.concurrency = s.concurrency(len(all))
	r.free = r.concurrency
	failed := 0
	for _, m := range all {
		switch m.Outcome = r.begin(m.cluster); m.State {
		case InProgress, Soaking:
			r.free--
		case Failed:
			r.free--
			failed++
		case TimeOut:
			failed++
		}
	}
	if most := s.failures(len(all)); s.Type == Progressive && failed > most {
		r.failed = tooMany(failed, "", most)
	}
	r.full = fmt.Sprintf("maxConcurrency is %d, and as many are in progress", r.concurrency)
	for _, stage := range r.stages(all) {
		r.decide(stage)
	}
	r.plan.Held = r.held
	for _, m := range all {
		r.plan.Clusters = append(r.plan.Clusters, m.Outcome)
		r.plan.Counts[m.State]++
	}
	return r.plan
}

func tooMany(failed int, where string, most int) string {
	return fmt.Sprintf("%d failed%s, and maxFailures is %d", failed, where, most)
}

// member is a cluster of a group.
type member struct {
	Outcome
	cluster *ClusterProgress
	group   string
	index   int
}

// members returns all clusters by name, without duplicates.
func (r *run) members(groups []Group) []*member {
	all := make([]*member, 0)
	for _, g := range groups {
		all = slices.Grow(all, len(g.Clusters))
		for _, c := range g.Clusters {
			all = append(all, &member{cluster: c, group: g.Name, index: g.Index})
		}
	}
	slices.SortStableFunc(all, func(a, b *member) int {
		return cmp.Or(cmp.Compare(a.cluster.Name, b.cluster.Name), cmp.Compare(b.index, a.index))
	})
	return slices.CompactFunc(all, func(a, b *member) bool { return a.cluster.Name == b.cluster.Name })
}

// run is the computation of one plan.
type run struct {
	strategy *Strategy
	now      time.Time
	plan     *Plan
	// free is the number of clusters that may still be started.
	concurrency, free int
	// held is the reason why the later stages must wait, if any.
	held string
	// failed reports that too many of all have failed, and full that the maximum number is in progress.
	failed, full string
}

// stage is a part of a rollout that must be done before the next begins.
type stage struct {
	what    string
	members []*member
	// failures is the number of clusters that may fail; negative means any number.
	failures  int
	mandatory bool
	// missing reports that the group does not exist.
	missing bool
}

func (r *run) stages(all []*member) (stages []stage) {
	if r.strategy.Type != Progressive && r.strategy.Type != PerGroup {
		return []stage{{members: all, failures: -1}}
	}
	rest := all
	taken := map[int]bool{}
	for _, mandatory := range r.strategy.Mandatory {
		s := stage{what: "the mandatory decision group " + mandatory.String(), mandatory: true, missing: true}
		for _, m := range all {
			if mandatory.is(m) {
				s.missing = false
				taken[m.index] = true
				s.members = append(s.members, m)
			}
		}
		stages = append(stages, s)
	}
	if len(taken) > 0 {
		rest = slices.DeleteFunc(slices.Clone(all), func(m *member) bool { return taken[m.index] })
	}
	if r.strategy.Type == Progressive {
		return append(stages, stage{members: rest, failures: r.strategy.failures(len(all))})
	}
	groups := map[int][]*member{}
	for _, m := range rest {
		groups[m.index] = append(groups[m.index], m)
	}
	for _, index := range slices.Sorted(maps.Keys(groups)) {
		stages = append(stages, stage{
			what: fmt.Sprintf("the decision group %d", index), members: groups[index], failures: r.strategy.failures(len(groups[index])),
		})
	}
	return stages
}

func (g MandatoryGroup) is(m *member) bool {
	if g.Name != "" {
		return m.group == g.Name
	}
	return m.index == g.Index
}

// decide writes as many clusters of a stage as may be started, unless it is held.
func (r *run) decide(s stage) {
	var failed, busy, blocked, open int
	first := ""
	for _, m := range s.members {
		switch m.State {
		case Failed:
			failed, busy = failed+1, busy+1
		case TimeOut:
			failed++
		case InProgress, Soaking:
			busy++
		case Blocked:
			blocked++
		case Waiting:
			open++
		default:
			continue
		}
		if first == "" {
			first = m.cluster.Name
		}
	}
	stopped := r.held
	switch {
	case stopped != "":
	case s.mandatory && failed > 0:
		stopped = fmt.Sprintf("%d failed in %s, where none may", failed, s.what)
	case r.failed != "":
		stopped = r.failed
	case s.failures >= 0 && failed > s.failures:
		stopped = tooMany(failed, " in "+s.what, s.failures)
	}
	for _, m := range s.members {
		switch {
		case m.State != Waiting || m.Waits != "":
		case stopped != "":
			m.Waits = stopped
		case r.free <= 0:
			m.Waits = r.full
		default:
			m.State = Writing
			r.plan.Write = append(r.plan.Write, m.Name)
			r.free--
		}
	}
	switch {
	case stopped != "":
		r.held = stopped
	case s.missing:
		r.held = fmt.Sprintf("%s has no clusters, or is not decided yet", s.what)
	case s.what != "" && (busy+open > 0 || s.mandatory && blocked > 0):
		r.held = fmt.Sprintf("%s is not done, such as %q", s.what, first)
	}
}

// begin returns the state of a cluster before more is written.
func (r *run) begin(c *ClusterProgress) Outcome {
	o := Outcome{Name: c.Name, Waits: c.Waits}
	switch {
	case c.Leaving:
		o.State, o.Waits = Waiting, "its work is being deleted, and then a new one is created"
	case !c.Current && c.Blocked != "":
		o.State, o.Waits = Blocked, c.Blocked
	case !c.Current:
		o.State, o.Waits = Waiting, ""
	case c.Progress == Succeeds:
		return r.soak(c)
	default:
		o.State = InProgress
		if c.Progress == Fails {
			o.State = Failed
		}
		if deadline := r.strategy.ProgressDeadline; deadline > 0 && !c.Written.IsZero() {
			if end := r.later(c.Written, c.Since).Add(deadline); r.now.Before(end) {
				r.requeueAt(end)
			} else {
				o.State, o.Waits = TimeOut, fmt.Sprintf("no success within %s: %s", deadline, c.Waits)
			}
		}
	}
	return o
}

// soak returns the state of a success.
func (r *run) soak(c *ClusterProgress) Outcome {
	o := Outcome{Name: c.Name, State: Succeeded}
	soak := r.strategy.soak()
	if soak == 0 {
		return o
	}
	since := c.Succeeded
	if since.IsZero() {
		r.plan.Note = append(r.plan.Note, c.Name)
		since = r.now
	}
	if end := r.later(since, c.Since).Add(soak); r.now.Before(end) {
		o.State, o.Waits = Soaking, fmt.Sprintf("succeeds, for less than the minSuccessTime of %s", soak)
		r.requeueAt(end)
	}
	return o
}

// later returns the recorded time, or the time of a later change of the condition. A time in the future, of an agent whose clock is fast, is
// ignored.
func (r *run) later(noted, changed time.Time) time.Time {
	if changed.After(noted) && !changed.After(r.now) {
		return changed
	}
	return noted
}

func (r *run) requeueAt(t time.Time) {
	if r.plan.Next.IsZero() || t.Before(r.plan.Next) {
		r.plan.Next = t
	}
}
