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
	Clusters []*Cluster
}

// Cluster is what is known of one.
type Cluster struct {
	Name string
	// Current says that it has what is brought, as it is now. Observation is of that.
	Current bool
	Observation
	// Written is when it was brought there, and Succeeded when it was first seen to be a success. They are times of the caller's own.
	Written, Succeeded time.Time
	// Leaving says that what was there before is being deleted, so nothing can be written yet.
	Leaving bool
	// Blocked says why nothing may be written there, if so. What is there and current is judged as ever.
	Blocked string
}

// State is where a cluster is in a rollout.
type State string

const (
	// Writing is to be written now.
	Writing State = "Writing"
	// Waiting is written later.
	Waiting State = "Waiting"
	// Blocked is not written, and nothing that others do changes that.
	Blocked State = "Blocked"
	// InProgress was written.
	InProgress State = "Progressing"
	// Failed does not work, and may do so within the deadline.
	Failed State = "Failed"
	// TimeOut was no success within the deadline. It may become one.
	TimeOut State = "TimeOut"
	// Soaking is a success, for less than MinSuccessTime.
	Soaking State = "Soaking"
	// Succeeded is a success.
	Succeeded State = "Succeeded"
)

// Outcome is what was decided for a cluster.
type Outcome struct {
	Name  string
	State State
	// Waits says what the cluster waits for, unless it is Writing or Succeeded.
	Waits string
}

// Plan is what to do now.
type Plan struct {
	// Clusters are all of them, by name.
	Clusters []Outcome
	// Write are the clusters that are to be written, in this order.
	Write []string
	// Note are the clusters that are to be noted as successes as of now.
	Note []string
	// Next is when to look again if nothing changes before; never, if it is zero.
	Next time.Time
	// Held says why no more clusters are written although some wait, if so.
	Held string
	// Counts are how many clusters are in each state.
	Counts map[State]int
}

// Done says that all clusters are successes.
func (p *Plan) Done() bool { return p.Counts[Succeeded]+p.Counts[Soaking] == len(p.Clusters) }

// Decide makes a plan. A cluster that is in several groups, as it may be while it moves, is in the last of them. With a strategy that is
// not valid, bounds are 0: it is for the caller to refuse it.
func Decide(s *Strategy, groups []Group, now time.Time) *Plan {
	r := &run{strategy: s, now: now, plan: &Plan{Counts: map[State]int{}}}
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
	cluster *Cluster
	group   string
	index   int
}

// members are all clusters by name, each once.
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

// run is the making of one plan.
type run struct {
	strategy *Strategy
	now      time.Time
	plan     *Plan
	// free is how many more may be in progress.
	concurrency, free int
	// held says why the stages to come have to wait, if so.
	held string
	// failed says that too many have failed of all, and full that all places are taken.
	failed, full string
}

// stage is a part that has to be done before the next begins.
type stage struct {
	what    string
	members []*member
	// failures are how many may fail; any number, if it is below 0.
	failures  int
	mandatory bool
	// missing says that there is no such group.
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

// decide writes what a stage has free places for, unless it is held.
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

// begin is where a cluster is before more is written.
func (r *run) begin(c *Cluster) Outcome {
	o := Outcome{Name: c.Name, Waits: c.Waits}
	switch {
	case c.Leaving:
		o.State, o.Waits = Waiting, "its work is being deleted, and then a new one is made"
	case !c.Current && c.Blocked != "":
		o.State, o.Waits = Blocked, c.Blocked
	case !c.Current:
		o.State, o.Waits = Waiting, ""
	case c.Progress == Succeeds:
		return r.soak(c)
	default:
		if o.State = InProgress; c.Progress == Fails {
			o.State = Failed
		}
		if deadline := r.strategy.ProgressDeadline; deadline > 0 && !c.Written.IsZero() {
			if end := r.later(c.Written, c.Since).Add(deadline); r.now.Before(end) {
				r.lookAt(end)
			} else {
				o.State, o.Waits = TimeOut, fmt.Sprintf("no success within %s: %s", deadline, c.Waits)
			}
		}
	}
	return o
}

// soak is where a success is.
func (r *run) soak(c *Cluster) Outcome {
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
		r.lookAt(end)
	}
	return o
}

// later is the time that the caller noted, or when the condition has changed after it. The clock of an agent that is ahead is not
// believed.
func (r *run) later(noted, changed time.Time) time.Time {
	if changed.After(noted) && !changed.After(r.now) {
		return changed
	}
	return noted
}

func (r *run) lookAt(t time.Time) {
	if r.plan.Next.IsZero() || t.Before(r.plan.Next) {
		r.plan.Next = t
	}
}
