// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/fleet"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
)

// Snapshot is the state of a hub for one placement. It is not changed.
type Snapshot struct {
	Now       time.Time
	Placement *clusterv1beta1.Placement
	// Decisions are all decisions with the label of the placement, in any order, whichever user wrote them.
	Decisions []*clusterv1beta1.PlacementDecision
	// Bindings are the names of the sets that are bound to the placement's namespace, in any order. Sets that do not exist do
	// not count.
	Bindings []string
	Clusters fleet.Clusters
	// Scores may be nil: no cluster has any.
	Scores fleet.Scores
	// Load may be nil: no other placement has decisions.
	Load fleet.Load
	// Timing may be nil.
	Timing Timing
}

// Result is the result for a placement.
type Result struct {
	// Disabled reports that the placement must not be changed. Then the other fields are empty.
	Disabled bool
	// Steps are the writes of decisions, in this order; after one that fails, the rest must be skipped. It is empty if the decisions are up to
	// date.
	Steps []Step
	// Status is the status of the placement. It must be written after the steps, if it has changed.
	Status clusterv1beta1.PlacementStatus
	// Clusters are the clusters in the decisions after the steps, ordered by name.
	Clusters []string
	// Again is the time at which the result may change without any other change, or zero for never.
	Again time.Time
	// Cost is the cost of CEL.
	Cost uint64
}

// evaluation is the evaluation of one placement.
type evaluation struct {
	program *spec.Program
	state   *Snapshot
	explain bool

	// bound are the sets that exist and are bound, and sets those of them that the placement uses; both are ordered by name.
	bound, sets []string
	// members are the lists of the sets, and clusters all of them, ordered by name. They include clusters that are being deleted.
	members  [][]*fleet.ClusterInfo
	clusters []*fleet.ClusterInfo
	// current has the clusters that are in decisions, with the decision.
	current map[string]*clusterv1beta1.PlacementDecision

	verdicts []spec.Verdict
	fallen   fallen
	// passed are the clusters that passed the filters, ordered by name. totals and columns are their scores.
	passed  []*fleet.ClusterInfo
	totals  []int64
	columns []column
	chosen  []pick

	// problem is the reason to keep the decisions as they are: an invalid spec, or failure, which is not caused by the user.
	problem, failure error
	warning          *warning
	next             time.Time
	cost             uint64
}

// fallen counts the clusters that have not passed.
type fallen struct {
	deleted int
	// parts are counts for each predicate. A cluster counts for each of them.
	parts  [][spec.CELPart + 1]int
	taints map[clusterv1.Taint]int
}

// Schedule chooses clusters. The end of the context ends the evaluation of CEL.
func Schedule(ctx context.Context, p *spec.Program, state Snapshot) *Result {
	if state.Placement.Annotations[clusterv1beta1.PlacementDisableAnnotation] == "true" {
		return &Result{Disabled: true, Status: state.Placement.Status}
	}
	defer state.Timing.of(TimeRun, "")()
	r := evaluate(ctx, p, &state, false)
	l := layout{r}
	groups := l.divide()
	if due := l.scoresDue(groups); !due.IsZero() {
		groups = l.asTheyAre()
		r.again(due)
	}
	result := &Result{Again: r.next, Clusters: namesOf(groups), Cost: r.cost}
	if r.failure == nil || len(state.Decisions) > 0 {
		result.Steps = plan(state.Placement, state.Decisions, groups)
		addEvents(r, result.Steps)
	}
	result.Status = r.status(groups, len(result.Steps) > 0)
	return result
}

// evaluate does all of it except the decisions.
func evaluate(ctx context.Context, p *spec.Program, state *Snapshot, explain bool) *evaluation {
	r := &evaluation{program: p, state: state, explain: explain, problem: p.Misconfigured}
	r.current = currentOf(state.Decisions)
	r.eligible()
	if r.problem != nil || r.failure != nil {
		return r
	}
	r.filter(ctx)
	r.failure = ctx.Err()
	if r.failure == nil && r.problem == nil {
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
			// The order of the decisions must not matter.
			if other := current[name]; other == nil || d.Name < other.Name {
				current[name] = d
			}
		}
	}
	return current
}

func (r *evaluation) isCurrent(cluster string) bool { return r.current[cluster] != nil }

// eligible finds the sets, and the clusters in them.
func (r *evaluation) eligible() {
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
	r.clusters = fleet.Union(r.members)
}

// filter determines the clusters that may be chosen.
func (r *evaluation) filter(ctx context.Context) {
	r.passed = make([]*fleet.ClusterInfo, 0, len(r.clusters))
	r.fallen.parts = make([][spec.CELPart + 1]int, len(r.program.Predicates))
	m := spec.NewMeter(len(r.clusters))
	defer r.state.Timing.of(TimeFilter, spec.PluginPredicate+","+spec.PluginTaint)()
	defer func(all uint64) {
		r.cost = all - m.Left
		if r.program.HasCEL() && r.state.Timing != nil {
			r.state.Timing(TimeCEL, "", m.Took)
		}
	}(m.Left)
	for i, c := range r.clusters {
		// Between clusters, too: not every placement has CEL.
		if i%1024 == 0 && ctx.Err() != nil {
			return
		}
		chosen := len(c.Object.Spec.Taints) > 0 && r.isCurrent(c.Name())
		v := r.program.Filter(ctx, c, r.state.Scores, m, chosen, r.state.Now)
		if m.Empty() {
			// The results of the filters for the clusters before it are dropped.
			r.passed, r.next = nil, time.Time{}
			r.problem = fmt.Errorf("%s:the CEL expressions cost more than %d for %d clusters: use fewer loops, or select clusters by labels before",
				spec.PluginPredicate, spec.RunCost+spec.ClusterCost*len(r.clusters), len(r.clusters))
			return
		}
		if r.explain {
			r.verdicts = append(r.verdicts, v)
		}
		switch v.By {
		case spec.Passed:
			r.passed = append(r.passed, c)
			r.again(v.Until)
		case spec.ByDeletion:
			r.fallen.deleted++
		case spec.ByPredicate:
			for j := range r.fallen.parts {
				r.fallen.parts[j][v.Part(j)]++
			}
		case spec.ByTaint:
			if r.fallen.taints == nil {
				r.fallen.taints = map[clusterv1.Taint]int{}
			}
			r.fallen.taints[clusterv1.Taint{Key: v.Taint.Key, Value: v.Taint.Value, Effect: v.Taint.Effect}]++
		}
	}
}

// unscheduled returns how many clusters are missing.
func (r *evaluation) unscheduled() int {
	if r.program.Number != nil {
		return int(*r.program.Number) - len(r.chosen)
	}
	// Only the spread leaves out any.
	return len(r.passed) - len(r.chosen)
}
