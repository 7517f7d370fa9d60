// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"iter"
	"time"

	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

// Seen is the state for the question whether a change of one cluster affects a placement.
type Seen struct {
	Now    time.Time
	Scores Scores
	// Chosen reports whether the cluster is in a decision of the placement, which was scheduled after all earlier changes that affect it.
	Chosen bool
	// Others are the clusters that the placement may choose from, including the changed one; nil if they are not known.
	Others iter.Seq[*ClusterInfo]
}

// maxOthers is the maximum number of clusters that are checked to avoid a run.
const maxOthers = 1024

// Touches reports whether a change of a cluster, which is in one of the placement's sets before and after it, can change anything that the
// placement shows, and the cost of the answer: that of the predicates for this one cluster. If the cost is too high, it returns true.
func (p *Program) Touches(ctx context.Context, before, after *ClusterInfo, seen Seen) (yes bool, cost uint64) {
	m := &meter{left: touchCost}
	yes = p.touches(ctx, m, before, after, seen)
	return yes, touchCost - m.left
}

func (p *Program) touches(ctx context.Context, m *meter, before, after *ClusterInfo, seen Seen) bool {
	if p.misconfigured != nil {
		return before.deleting() != after.deleting()
	}
	was := p.judge(ctx, before, seen.Scores, m, seen.Chosen, seen.Now)
	is := p.judge(ctx, after, seen.Scores, m, seen.Chosen, seen.Now)
	if m.empty() {
		return true
	}
	if was != is {
		return seen.Chosen || was.by != passed || is.by == passed || !p.leavesOut() || !p.scaledByOthers(ctx, m, before, seen)
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

// leavesOut reports whether a cluster that passes the filters can be in no decision only because enough others are better. Then nothing changes
// when it is excluded, or gets worse. With a spread, it counts although it is not chosen; CEL has limits for all clusters together.
func (p *Program) leavesOut() bool { return p.number != nil && len(p.spread) == 0 && !p.hasCEL() }

// scaledByOthers reports whether the scores of all others stay the same without a cluster: for each resource, another cluster passes that has no
// more, and one that has no less.
func (p *Program) scaledByOthers(ctx context.Context, m *meter, c *ClusterInfo, seen Seen) bool {
	for i := range p.prioritizers {
		one := &p.prioritizers[i]
		of, isResource := one.amount()
		if one.weight == 0 || !isResource || !of(c).reported {
			continue
		}
		if seen.Others == nil || !p.between(ctx, m, c, of, seen) {
			return false
		}
	}
	return true
}

func (p *Program) between(ctx context.Context, m *meter, c *ClusterInfo, of func(*ClusterInfo) amount, seen Seen) bool {
	var less, more bool
	looked := 0
	for other := range seen.Others {
		looked++
		if looked > maxOthers {
			return false
		}
		a := of(other)
		if other.Name() == c.Name() || !a.reported || less && a.value < of(c).value || more && a.value > of(c).value ||
			p.judge(ctx, other, seen.Scores, m, false, seen.Now).by != passed {
			continue
		}
		less, more = less || a.value <= of(c).value, more || a.value >= of(c).value
		if less && more {
			return true
		}
	}
	return false
}

// scoresDecide reports whether scores have an effect. They have none if all clusters are chosen, in the order of their names.
func (p *Program) scoresDecide() bool { return p.number != nil || p.byScore || len(p.spread) > 0 }

// TouchesScore reports whether a change of a cluster's AddOnPlacementScore of a name can change anything that the placement shows. before or after
// may be nil.
func (p *Program) TouchesScore(
	ctx context.Context, c *ClusterInfo, name string, before, after *clusterv1alpha1.AddOnPlacementScore, seen Seen,
) (yes bool, cost uint64) {
	switch {
	case p.misconfigured != nil:
		return false, 0
	case p.reads[name] || p.reads[""]:
		// Other predicates may match now.
		return true, 0
	case !p.scoresDecide() || !p.prioritizes(name), !seen.Chosen && p.leavesOut() && p.isNoBetter(name, before, after):
		return false, 0
	}
	m := &meter{left: touchCost}
	v := p.judge(ctx, c, seen.Scores, m, seen.Chosen, seen.Now)
	return v.by == passed || m.empty(), touchCost - m.left
}

// isNoBetter reports whether no prioritizer gives a cluster a higher score for its AddOnPlacementScore of a name than before the change.
func (p *Program) isNoBetter(name string, before, after *clusterv1alpha1.AddOnPlacementScore) bool {
	for _, object := range []*clusterv1alpha1.AddOnPlacementScore{before, after} {
		if object != nil && object.Status.ValidUntil != nil {
			return false // When it expires, the cluster may be better.
		}
	}
	for i := range p.prioritizers {
		if one := &p.prioritizers[i]; one.resource == name && one.weight*(one.of(after)-one.of(before)) > 0 {
			return false
		}
	}
	return true
}

// prioritizes reports whether the AddOnPlacementScores of that name count.
func (p *Program) prioritizes(name string) bool {
	for i := range p.prioritizers {
		if p.prioritizers[i].weight != 0 && p.prioritizers[i].resource == name {
			return true
		}
	}
	return false
}
