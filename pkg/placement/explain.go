// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

// Explanation explains why a placement chooses a cluster, or does not.
type Explanation struct {
	Cluster string
	// Sets are the sets of the placement that the cluster is in, ordered by name. A user who may see none of them must not see this.
	Sets   []string
	Chosen bool
	// FilteredBy is the filter that excluded the cluster: Deletion, Predicate, TaintToleration, Spread or NumberOfClusters; empty for a chosen
	// cluster.
	FilteredBy string
	// Message is the explanation as text.
	Message string
	// Passed reports whether the cluster has passed the predicates and the taints.
	Passed bool
	// Mismatches are the predicates that the cluster does not match, if it matches none.
	Mismatches []Mismatch
	// Scores are the scores of each prioritizer, and Total is the sum of weight times score. Clusters that were excluded by a predicate or a taint
	// have none.
	Scores []PrioritizerScore
	Total  int64
	// Group and Decision are the group and the PlacementDecision of the cluster, if it is chosen.
	GroupIndex          int
	GroupName, Decision string
}

// Mismatch is a predicate, by its index, and the selector of it that a cluster does not match.
type Mismatch struct {
	Predicate int
	Selector  string
}

// PrioritizerScore is the score of one prioritizer for a cluster.
type PrioritizerScore struct {
	Name          string
	Weight, Score int64
	// Compared are the other clusters that the score depends on.
	Compared Compared
}

// Compared are the clusters that one is compared with.
type Compared uint8

// A score can depend on no other cluster, on those of the placement, or on all of the hub.
const (
	WithNone Compared = iota
	WithPlacement
	WithHub
)

func (p *prioritizer) compares() Compared {
	switch {
	case p.resource != "" || p.name == clusterv1beta1.PrioritizerSteady:
		return WithNone
	case p.name == clusterv1beta1.PrioritizerBalance:
		return WithHub
	}
	return WithPlacement
}

// Explained is a placement with an explanation for each of its clusters.
type Explained struct {
	// Clusters are all clusters in the sets of the placement, ordered by name.
	Clusters []Explanation
	// Sets are the sets that the placement chooses from, ordered by name.
	Sets []string
	// Problem is the reason why no new clusters are chosen, if any.
	Problem string
}

// Explain returns the result of Schedule in this state, and the reasons. It is the same computation.
func (p *Program) Explain(ctx context.Context, state Snapshot) *Explained {
	r := p.run(ctx, &state, true)
	result := &Explained{Clusters: make([]Explanation, len(r.clusters)), Sets: r.sets}
	if r.failure != nil {
		result.Problem = r.failure.Error()
	} else if r.problem != nil {
		result.Problem = r.problem.Error()
	}
	at := make(map[string]int, len(r.clusters))
	for i, c := range r.clusters {
		result.Clusters[i].Cluster = c.Name()
		at[c.Name()] = i
	}
	for i, members := range r.members {
		for _, c := range members {
			e := &result.Clusters[at[c.Name()]]
			e.Sets = append(e.Sets, r.sets[i])
		}
	}
	groups := r.divide()
	for i := range groups {
		for _, s := range groups[i].slices {
			for _, d := range s.decisions {
				if j, known := at[d.ClusterName]; known {
					e := &result.Clusters[j]
					e.Chosen, e.GroupIndex, e.GroupName, e.Decision = true, i, groups[i].name, s.name
				}
			}
		}
	}
	r.explainScores(result, at)
	for i := range result.Clusters {
		r.explainCluster(&result.Clusters[i], i)
	}
	return result
}

func (r *run) explainScores(result *Explained, at map[string]int) {
	if r.problem != nil || r.failure != nil {
		return
	}
	for i, c := range r.passed {
		e := &result.Clusters[at[c.Name()]]
		e.Passed, e.Total = true, r.totals[i]
		for j := range r.columns {
			column := &r.columns[j]
			e.Scores = append(e.Scores, PrioritizerScore{column.name, column.weight, column.scores[i], column.compares()})
		}
	}
}

func (r *run) explainCluster(e *Explanation, index int) {
	if r.problem != nil || r.failure != nil {
		e.Message = "The cluster is not in the last decisions, and no new clusters are chosen"
		if e.Chosen {
			e.Message = "The cluster is in the last decisions, which are kept"
		}
		return
	}
	v := &r.verdicts[index]
	switch {
	case v.by == byDeletion:
		e.FilteredBy, e.Message = "Deletion", "The cluster is being deleted"
	case v.by == byPredicate:
		var parts []string
		for i := range r.program.predicates {
			e.Mismatches = append(e.Mismatches, Mismatch{i, v.part(i).String()})
			parts = append(parts, fmt.Sprintf("the %s of predicate %d", v.part(i), i))
		}
		e.FilteredBy, e.Message = pluginPredicate, "The cluster does not match "+strings.Join(parts, ", nor ")
	case v.by == byTaint:
		e.FilteredBy = pluginTaint
		e.Message = fmt.Sprintf("The taint %s of the cluster is not tolerated", taintText(&v.taint))
	case e.Chosen:
		e.Message = "The cluster is chosen"
	case r.program.number != nil && len(r.chosen) >= int(*r.program.number):
		e.FilteredBy = pluginNumber
		e.Message = fmt.Sprintf("%d clusters are wanted, and others come before this one", *r.program.number)
	default:
		e.FilteredBy, e.Message = pluginSpread, "The cluster would break a constraint of the spreadPolicy with DoNotSchedule"
	}
}

// NeedsScores reports whether an explanation depends on any AddOnPlacementScore.
func (p *Program) NeedsScores() bool {
	return len(p.reads) > 0 || slices.ContainsFunc(p.prioritizers, func(one prioritizer) bool { return one.weight != 0 && one.resource != "" })
}

// NeedsLoad reports whether an explanation depends on the decisions of other placements.
func (p *Program) NeedsLoad() bool {
	return slices.ContainsFunc(p.prioritizers, func(one prioritizer) bool { return one.weight != 0 && one.compares() == WithHub })
}

// ChoosesFrom reports whether a placement chooses clusters of a set that is bound to its namespace.
func (p *Program) ChoosesFrom(set string) bool {
	return len(p.clusterSets) == 0 || slices.Contains(p.clusterSets, set)
}
