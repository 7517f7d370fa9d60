// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"time"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

// Touches says whether a change of a cluster, which is in one of the placement's sets before and after it, can change
// anything that the placement shows, and what the answer has cost: the predicates for this one cluster. If they cost much, it says yes.
// chosen says that the cluster is in a decision of the placement.
func (p *Program) Touches(ctx context.Context, before, after *Cluster, scores Scores, chosen bool, now time.Time) (yes bool, cost uint64) {
	m := &meter{left: touchCost}
	yes = p.touches(ctx, m, before, after, scores, chosen, now)
	return yes, touchCost - m.left
}

func (p *Program) touches(ctx context.Context, m *meter, before, after *Cluster, scores Scores, chosen bool, now time.Time) bool {
	if p.misconfigured != nil {
		return before.deleting() != after.deleting()
	}
	was, is := p.judge(ctx, before, scores, m, chosen, now), p.judge(ctx, after, scores, m, chosen, now)
	if was != is || m.empty() {
		return true
	}
	if is.by != passed {
		return false
	}
	for i := range p.prioritizers {
		switch one := &p.prioritizers[i]; {
		case one.weight == 0:
		case one.name == clusterv1beta1.PrioritizerResourceAllocatableCPU && before.cpu != after.cpu,
			one.name == clusterv1beta1.PrioritizerResourceAllocatableMemory && before.memory != after.memory:
			if p.scoresDecide() {
				return true
			}
		}
	}
	for i := range p.spread {
		x, inX := topologyValue(&p.spread[i], before)
		y, inY := topologyValue(&p.spread[i], after)
		if x != y || inX != inY {
			return true
		}
	}
	for i := range p.groups {
		g := &p.groups[i]
		if g.matches(before) != g.matches(after) {
			return true
		}
	}
	return false
}

// scoresDecide is false if everything is taken, by name.
func (p *Program) scoresDecide() bool { return p.number != nil || p.byScore || len(p.spread) > 0 }

// TouchesScore says whether a change of a cluster's AddOnPlacementScore of a name can change anything that the placement shows.
func (p *Program) TouchesScore(ctx context.Context, c *Cluster, name string, scores Scores, chosen bool, now time.Time) (yes bool, cost uint64) {
	switch {
	case p.misconfigured != nil:
		return false, 0
	case p.reads[name] || p.reads[""]:
		// Which predicates match may be another matter now.
		return true, 0
	case !p.scoresDecide() || !p.prioritizes(name):
		return false, 0
	}
	m := &meter{left: touchCost}
	v := p.judge(ctx, c, scores, m, chosen, now)
	return v.by == passed || m.empty(), touchCost - m.left
}

// prioritizes says whether scores of that name count.
func (p *Program) prioritizes(name string) bool {
	for i := range p.prioritizers {
		if p.prioritizers[i].weight != 0 && p.prioritizers[i].resource == name {
			return true
		}
	}
	return false
}
