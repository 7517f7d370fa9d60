// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementexplanation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
	"github.com/clusterhub/clusterhub/pkg/registry/view/visibility"
)

// seer reports what the reader sees.
type seer interface {
	// Shows reports whether the reader sees a cluster, ShowsSet whether those of a set, and ShowsAll whether those of all sets. The latter two do not
	// depend on the existing clusters.
	Shows(cluster string) bool
	ShowsSet(set string) bool
	ShowsAll() bool
}

var _ seer = &visibility.OfSets{}

// noSet is the filter that excludes a cluster that is in no set of the placement.
const noSet = "ClusterSet"

// show returns the part of an explanation that the reader may see.
func show(p *v1beta1.Placement, all *run.Explained, seen seer, asked *cluster.PlacementExplainOptions) *cluster.PlacementExplanation {
	e := &cluster.PlacementExplanation{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: p.UID, Generation: p.Generation},
	}
	v := &viewer{seer: seen, hub: seen.ShowsAll()}
	v.sets = !slices.ContainsFunc(all.Sets, func(set string) bool { return !seen.ShowsSet(set) })
	e.Status.Partial = !v.sets
	e.Status.Problem = problem(p, all, v.sets)
	shown := slices.DeleteFunc(all.Clusters, func(c run.Explanation) bool {
		// The visibility of a requested cluster was checked already.
		return c.Cluster != asked.Cluster && !seen.Shows(c.Cluster)
	})
	ranks := v.ranks(shown)
	if asked.Cluster != "" {
		e.Status.Clusters = []cluster.ExplainedCluster{{
			ClusterName: asked.Cluster, FilteredBy: noSet, Message: "The cluster is in none of the sets that the placement chooses from",
		}}
		for i := range shown {
			if shown[i].Cluster == asked.Cluster {
				e.Status.Clusters[0] = v.cluster(&shown[i], ranks)
			}
		}
		return e
	}
	e.Status.Counts = counts(shown)
	from, _ := slices.BinarySearchFunc(shown, asked.Continue, func(c run.Explanation, after string) int {
		// The last cluster of the previous page is not repeated.
		if asked.Continue != "" && c.Cluster == after {
			return -1
		}
		return strings.Compare(c.Cluster, after)
	})
	page := shown[from:]
	if int64(len(page)) > asked.Limit {
		page = page[:asked.Limit]
		e.Status.Continue = page[len(page)-1].Cluster
	}
	for i := range page {
		e.Status.Clusters = append(e.Status.Clusters, v.cluster(&page[i], ranks))
	}
	return e
}

// problem returns the problem in full if the reader sees all clusters of the placement, since it may count them.
func problem(p *v1beta1.Placement, all *run.Explained, full bool) string {
	switch {
	case p.Annotations[v1beta1.PlacementDisableAnnotation] == "true":
		return fmt.Sprintf("The annotation %s prevents the hub from scheduling the placement: these are the clusters that it would choose", v1beta1.PlacementDisableAnnotation)
	case p.DeletionTimestamp != nil:
		return "The placement is being deleted: these are the clusters that it would choose"
	case all.Problem != "" && !full:
		return "No new clusters are chosen: see the conditions of the placement"
	}
	return all.Problem
}

// viewer converts clusters for the reader.
type viewer struct {
	seer
	// sets reports whether the reader sees all clusters of the placement, and hub whether the reader sees those of all sets.
	sets, hub bool
}

// knows reports whether the reader sees everything that a score compares. It does not depend on the existing clusters.
func (v *viewer) knows(score *run.PrioritizerScore) bool {
	switch score.Compared {
	case spec.WithNone:
		return true
	case spec.WithPlacement:
		return v.sets
	}
	return v.hub
}

// ranks returns the ranks of the clusters that passed and whose total is shown.
func (v *viewer) ranks(shown []run.Explanation) map[string]int32 {
	var ranked []*run.Explanation
	for i := range shown {
		if shown[i].Passed && v.knowsTotal(&shown[i]) {
			ranked = append(ranked, &shown[i])
		}
	}
	slices.SortFunc(ranked, func(a, b *run.Explanation) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), strings.Compare(a.Cluster, b.Cluster))
	})
	ranks := make(map[string]int32, len(ranked))
	for i := range ranked {
		ranks[ranked[i].Cluster] = int32(i + 1)
	}
	return ranks
}

func (v *viewer) knowsTotal(of *run.Explanation) bool {
	return !slices.ContainsFunc(of.Scores, func(s run.PrioritizerScore) bool { return !v.knows(&s) })
}

func (v *viewer) cluster(of *run.Explanation, ranks map[string]int32) cluster.ExplainedCluster {
	c := cluster.ExplainedCluster{ClusterName: of.Cluster, Chosen: of.Chosen, FilteredBy: of.FilteredBy, Message: of.Message}
	for _, set := range of.Sets {
		if v.ShowsSet(set) {
			c.ClusterSets = append(c.ClusterSets, set)
		}
	}
	for _, m := range of.Mismatches {
		c.Mismatches = append(c.Mismatches, cluster.PredicateMismatch{Predicate: int32(m.Predicate), Selector: m.Selector})
	}
	for i := range of.Scores {
		s := &of.Scores[i]
		score := cluster.ExplainedScore{Name: s.Name, Weight: int32(s.Weight)}
		if v.knows(s) {
			score.Score = new(int32(s.Score))
		}
		c.Scores = append(c.Scores, score)
	}
	if rank, known := ranks[of.Cluster]; known {
		c.TotalScore, c.Rank = new(of.Total), &rank
	}
	if of.Chosen {
		c.DecisionGroupIndex, c.DecisionGroupName, c.DecisionName = new(int32(of.GroupIndex)), of.GroupName, of.Decision
	}
	return c
}

// counts returns how many clusters are chosen, and how many are excluded by each filter, the most first.
func counts(shown []run.Explanation) (result []cluster.ExplainedCount) {
	at := map[string]int{}
	for i := range shown {
		by := shown[i].FilteredBy
		if !shown[i].Chosen && by == "" {
			continue // problem has the reason
		}
		if _, known := at[by]; !known {
			at[by] = len(result)
			result = append(result, cluster.ExplainedCount{FilteredBy: by})
		}
		result[at[by]].Clusters++
	}
	slices.SortFunc(result, func(a, b cluster.ExplainedCount) int {
		return cmp.Or(cmp.Compare(min(len(a.FilteredBy), 1), min(len(b.FilteredBy), 1)), cmp.Compare(b.Clusters, a.Clusters),
			strings.Compare(a.FilteredBy, b.FilteredBy))
	})
	return result
}
