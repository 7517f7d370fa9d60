// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"slices"
	"time"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

// State is a hub as one placement sees it. Nothing of it is changed.
type State struct {
	Now       time.Time
	Placement *clusterv1beta1.Placement
	// Decisions are those with the label of the placement, in any order, whoever wrote them.
	Decisions []*clusterv1beta1.PlacementDecision
	// Bindings are the names of the sets that are bound to the placement's namespace, in any order. Sets that do not exist do
	// not count.
	Bindings []string
	Clusters Clusters
	// Scores may be nil: no cluster has any.
	Scores Scores
	// Load may be nil: no other placement has decisions.
	Load Load
	// Timing may be nil.
	Timing Timing
}

// Result is what a placement comes to.
type Result struct {
	// Disabled says that the placement is to be left alone. Then there is nothing else.
	Disabled bool
	// Steps are the writes of decisions, to be done in this order; after one that fails, none. There are none if the decisions are
	// as they should be.
	Steps []Step
	// Status is that of the placement. It is to be written after the steps, if it is another one than before.
	Status clusterv1beta1.PlacementStatus
	// Clusters are those in the decisions after the steps, ordered by name.
	Clusters []string
	// Again is when the result may be another one without any change; never, if it is zero.
	Again time.Time
	// Cost is what CEL has cost.
	Cost uint64
}

// run is one placement being scheduled.
type run struct {
	program *Program
	state   *State
	explain bool

	// bound are the sets that exist and are bound, and sets those of them that the placement takes; both are ordered by name.
	bound, sets []string
	// members are the lists of the sets, and clusters all of them, ordered by name. Clusters that are being deleted are among them.
	members  [][]*Cluster
	clusters []*Cluster
	// current has the clusters that are in decisions, and in which.
	current map[string]*clusterv1beta1.PlacementDecision

	verdicts []verdict
	fallen   fallen
	// passed are the clusters that passed the filters, ordered by name. totals and columns are their scores.
	passed  []*Cluster
	totals  []int64
	columns []column
	chosen  []pick

	// problem is what keeps the decisions as they are: the spec, or failure, which is not the user's fault.
	problem, failure error
	warning          *warning
	next             time.Time
	cost             uint64
}

// fallen counts the clusters that have not passed.
type fallen struct {
	deleted int
	// parts are counts for each predicate. A cluster counts for each of them.
	parts  [][celPart + 1]int
	taints map[clusterv1.Taint]int
}

// Schedule chooses clusters. The context ends CEL that takes long.
func (p *Program) Schedule(ctx context.Context, state State) *Result {
	if state.Placement.Annotations[clusterv1beta1.PlacementDisableAnnotation] == "true" {
		return &Result{Disabled: true, Status: state.Placement.Status}
	}
	defer state.Timing.of(TimeRun, "")()
	r := p.run(ctx, &state, false)
	groups := r.divide()
	if due := r.scoresDue(groups); !due.IsZero() {
		groups = r.asTheyAre()
		r.again(due)
	}
	result := &Result{Again: r.next, Clusters: namesOf(groups), Cost: r.cost}
	if r.failure == nil || len(state.Decisions) > 0 {
		result.Steps = r.plan(groups)
	}
	result.Status = r.status(groups, len(result.Steps) > 0)
	return result
}

// run goes through all of it but the decisions.
func (p *Program) run(ctx context.Context, state *State, explain bool) *run {
	r := &run{program: p, state: state, explain: explain, problem: p.misconfigured}
	r.current = currentOf(state.Decisions)
	r.eligible()
	if r.problem != nil || r.failure != nil {
		return r
	}
	r.filter(ctx)
	if r.failure = ctx.Err(); r.failure == nil && r.problem == nil {
		r.choose()
	}
	return r
}

func currentOf(decisions []*clusterv1beta1.PlacementDecision) map[string]*clusterv1beta1.PlacementDecision {
	size := 0
	for _, d := range decisions {
		size += len(d.Status.Decisions)
	}
	current := make(map[string]*clusterv1beta1.PlacementDecision, size)
	for _, d := range decisions {
		for i := range d.Status.Decisions {
			name := d.Status.Decisions[i].ClusterName
			// Whatever the order of the decisions.
			if other := current[name]; other == nil || d.Name < other.Name {
				current[name] = d
			}
		}
	}
	return current
}

func (r *run) isCurrent(cluster string) bool { return r.current[cluster] != nil }

// eligible finds the sets, and the clusters in them.
func (r *run) eligible() {
	for _, set := range slices.Sorted(slices.Values(r.state.Bindings)) {
		if len(r.bound) > 0 && r.bound[len(r.bound)-1] == set {
			continue
		}
		members, exists, err := r.state.Clusters.Members(set)
		if !exists {
			continue
		}
		r.bound = append(r.bound, set)
		if !r.program.ChoosesFrom(set) {
			continue
		}
		if err != nil {
			r.failure = err
		}
		r.sets = append(r.sets, set)
		r.members = append(r.members, members)
	}
	r.clusters = union(r.members)
}

// filter leaves the clusters that may be chosen.
func (r *run) filter(ctx context.Context) {
	r.passed = make([]*Cluster, 0, len(r.clusters))
	r.fallen.parts = make([][celPart + 1]int, len(r.program.predicates))
	m := newMeter(len(r.clusters))
	defer r.state.Timing.of(TimeFilter, pluginPredicate+","+pluginTaint)()
	defer func(all uint64) {
		r.cost = all - m.left
		if r.program.hasCEL() && r.state.Timing != nil {
			r.state.Timing(TimeCEL, "", m.took)
		}
	}(m.left)
	for i, c := range r.clusters {
		// Between clusters, too: not every placement has CEL.
		if i%1024 == 0 && ctx.Err() != nil {
			return
		}
		chosen := len(c.Object.Spec.Taints) > 0 && r.isCurrent(c.Name())
		v := r.program.judge(ctx, c, r.state.Scores, m, chosen, r.state.Now)
		if m.empty() {
			// What the filters said of the clusters before it decides nothing.
			r.passed, r.next = nil, time.Time{}
			r.problem = fmt.Errorf("%s:the CEL expressions cost more than %d for %d clusters: use fewer loops, or select clusters by labels before",
				pluginPredicate, runCost+clusterCost*len(r.clusters), len(r.clusters))
			return
		}
		if r.explain {
			r.verdicts = append(r.verdicts, v)
		}
		switch v.by {
		case passed:
			r.passed = append(r.passed, c)
			r.again(v.until)
		case byDeletion:
			r.fallen.deleted++
		case byPredicate:
			for j := range r.fallen.parts {
				r.fallen.parts[j][v.part(j)]++
			}
		case byTaint:
			if r.fallen.taints == nil {
				r.fallen.taints = map[clusterv1.Taint]int{}
			}
			r.fallen.taints[clusterv1.Taint{Key: v.taint.Key, Value: v.taint.Value, Effect: v.taint.Effect}]++
		}
	}
}

// unscheduled is how many clusters were wanted and not found.
func (r *run) unscheduled() int {
	if r.program.number != nil {
		return int(*r.program.number) - len(r.chosen)
	}
	// Only the spread leaves out any.
	return len(r.passed) - len(r.chosen)
}
