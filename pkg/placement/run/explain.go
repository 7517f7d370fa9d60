// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
	"strings"
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
	Compared spec.Compared
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
func Explain(ctx context.Context, p *spec.Program, state Snapshot) *Explained {
	r := evaluate(ctx, p, &state, true)
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
	groups := layout{r}.divide()
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
	explainScores(r, result, at)
	for i := range result.Clusters {
		explainCluster(r, &result.Clusters[i], i)
	}
	return result
}

func explainScores(r *evaluation, result *Explained, at map[string]int) {
	if r.problem != nil || r.failure != nil {
		return
	}
	for i, c := range r.passed {
		e := &result.Clusters[at[c.Name()]]
		e.Passed, e.Total = true, r.totals[i]
		for j := range r.columns {
			column := &r.columns[j]
			e.Scores = append(e.Scores, PrioritizerScore{column.Name, column.Weight, column.scores[i], column.Compares()})
		}
	}
}

func explainCluster(r *evaluation, e *Explanation, index int) {
	if r.problem != nil || r.failure != nil {
		e.Message = "The cluster is not in the last decisions, and no new clusters are chosen"
		if e.Chosen {
			e.Message = "The cluster is in the last decisions, which are kept"
		}
		return
	}
	v := &r.verdicts[index]
	switch {
	case v.By == spec.ByDeletion:
		e.FilteredBy, e.Message = "Deletion", "The cluster is being deleted"
	case v.By == spec.ByPredicate:
		var parts []string
		for i := range r.program.Predicates {
			e.Mismatches = append(e.Mismatches, Mismatch{i, v.Part(i).String()})
			parts = append(parts, fmt.Sprintf("the %s of predicate %d", v.Part(i), i))
		}
		e.FilteredBy, e.Message = spec.PluginPredicate, "The cluster does not match "+strings.Join(parts, ", nor ")
	case v.By == spec.ByTaint:
		e.FilteredBy = spec.PluginTaint
		e.Message = fmt.Sprintf("The taint %s of the cluster is not tolerated", taintText(&v.Taint))
	case e.Chosen:
		e.Message = "The cluster is chosen"
	case r.program.Number != nil && len(r.chosen) >= int(*r.program.Number):
		e.FilteredBy = spec.PluginNumber
		e.Message = fmt.Sprintf("%d clusters are wanted, and others come before this one", *r.program.Number)
	default:
		e.FilteredBy, e.Message = spec.PluginSpread, "The cluster would break a constraint of the spreadPolicy with DoNotSchedule"
	}
}
