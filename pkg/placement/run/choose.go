// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"container/heap"
	"slices"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/fleet"
)

// pick is a chosen cluster.
type pick struct {
	cluster *fleet.ClusterInfo
	score   int64
}

// choose takes the best of the clusters that have passed, up to the number in the spec, and orders them as they are shown.
func (r *evaluation) choose() {
	p := r.program
	limit := len(r.passed)
	if p.Number != nil {
		limit = min(limit, int(*p.Number))
	}
	// Scores have no effect if all clusters are chosen and scores are not shown.
	if limit < len(r.passed) || p.ByScore || len(p.Spread) > 0 || r.explain {
		r.scores()
	}
	var indices []int32
	switch {
	case len(p.Spread) > 0:
		indices = r.steadySpread(limit)
	case limit == len(r.passed) && !p.ByScore:
		r.chosen = make([]pick, limit)
		for i, c := range r.passed {
			r.chosen[i] = pick{cluster: c}
			if r.totals != nil {
				r.chosen[i].score = r.totals[i]
			}
		}
		return
	default:
		indices = r.order(limit)
	}
	slices.Sort(indices)
	r.chosen = make([]pick, len(indices))
	for i, index := range indices {
		r.chosen[i] = pick{r.passed[index], r.totals[index]}
	}
	if !p.ByScore {
		return
	}
	// The shown scores are those of the next run, for which all of these clusters were chosen before.
	weight := r.steadyWeight()
	for i := range r.chosen {
		if !r.isCurrent(r.chosen[i].cluster.Name()) {
			r.chosen[i].score += weight
		}
	}
	slices.SortStableFunc(r.chosen, func(a, b pick) int { return cmp.Compare(b.score, a.score) })
}

// steadyWeight returns the additional score of a cluster that is chosen already.
func (r *evaluation) steadyWeight() (weight int64) {
	for _, p := range r.program.Prioritizers {
		if p.Name == clusterv1beta1.PrioritizerSteady {
			weight = 100 * p.Weight
		}
	}
	return weight
}

// compare orders by decreasing score. Clusters that have passed are ordered by name, so the index stands for the name.
func (r *evaluation) compare(a, b int32) int {
	return cmp.Or(cmp.Compare(r.totals[b], r.totals[a]), cmp.Compare(a, b))
}

// order returns the best clusters that have passed, up to a limit, the best one first.
func (r *evaluation) order(limit int) []int32 {
	if limit == 0 {
		return nil
	}
	indices := make([]int32, 0, limit)
	// For ten of ten thousand, few comparisons are needed: a heap has the worst one of the best on top.
	worst := &indexHeap{less: func(a, b int32) bool { return r.compare(a, b) > 0 }}
	for i := range int32(len(r.passed)) {
		switch {
		case len(indices) < limit:
			indices = append(indices, i)
			if len(indices) == limit {
				worst.items = indices
				heap.Init(worst)
			}
		case r.compare(i, worst.items[0]) < 0:
			worst.items[0] = i
			heap.Fix(worst, 0)
		}
	}
	slices.SortFunc(indices, r.compare)
	return indices
}

// indexHeap is a heap of indices, for container/heap.
type indexHeap struct {
	items []int32
	less  func(a, b int32) bool
}

func (h *indexHeap) Len() int           { return len(h.items) }
func (h *indexHeap) Less(i, j int) bool { return h.less(h.items[i], h.items[j]) }
func (h *indexHeap) Swap(i, j int)      { h.items[i], h.items[j] = h.items[j], h.items[i] }
func (h *indexHeap) Push(x any)         { h.items = append(h.items, x.(int32)) }
func (h *indexHeap) Pop() any {
	last := h.items[len(h.items)-1]
	h.items = h.items[:len(h.items)-1]
	return last
}
