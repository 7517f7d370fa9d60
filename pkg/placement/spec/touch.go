// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"context"
	"iter"
	"time"

	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/fleet"
)

// Seen is the state for the question whether a change of one cluster affects a placement.
type Seen struct {
	Now    time.Time
	Scores fleet.Scores
	// Chosen reports whether the cluster is in a decision of the placement, which was scheduled after all earlier changes that affect it.
	Chosen bool
	// Others are the clusters that the placement may choose from, including the changed one; nil if they are not known.
	Others iter.Seq[*fleet.ClusterInfo]
}

// maxOthers is the maximum number of clusters that are checked to avoid a run.
const maxOthers = 1024

// Touches reports whether a change of a cluster, which is in one of the placement's sets before and after it, can change anything that the
// placement shows, and the cost of the answer: that of the predicates for this one cluster. If the cost is too high, it returns true.
func (p *Program) Touches(ctx context.Context, before, after *fleet.ClusterInfo, seen Seen) (yes bool, cost uint64) {
	m := &Meter{Left: touchCost}
	yes = p.touches(ctx, m, before, after, seen)
	return yes, touchCost - m.Left
}

func (p *Program) touches(ctx context.Context, m *Meter, before, after *fleet.ClusterInfo, seen Seen) bool {
	if p.Misconfigured != nil {
		return before.Deleting() != after.Deleting()
	}
	was := p.Filter(ctx, before, seen.Scores, m, seen.Chosen, seen.Now)
	is := p.Filter(ctx, after, seen.Scores, m, seen.Chosen, seen.Now)
	if m.Empty() {
		return true
	}
	if was != is {
		return seen.Chosen || was.By != Passed || is.By == Passed || !p.isLimited() || !p.scaledByOthers(ctx, m, before, seen)
	}
	if is.By != Passed {
		return false
	}
	for i := range p.Prioritizers {
		switch one := &p.Prioritizers[i]; {
		case one.Weight == 0:
		case one.Name == clusterv1beta1.PrioritizerResourceAllocatableCPU && before.CPU != after.CPU,
			one.Name == clusterv1beta1.PrioritizerResourceAllocatableMemory && before.Memory != after.Memory:
			if p.scoresDecide() {
				return true
			}
		}
	}
	for i := range p.Spread {
		x, inX := TopologyValue(&p.Spread[i], before)
		y, inY := TopologyValue(&p.Spread[i], after)
		if x != y || inX != inY {
			return true
		}
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		if g.Matches(before) != g.Matches(after) {
			return true
		}
	}
	return false
}

// isLimited reports whether a cluster that passes the filters can be in no decision only because enough others are better. Then nothing changes
// when it is excluded, or gets worse. With a spread, it counts although it is not chosen; CEL has limits for all clusters together.
func (p *Program) isLimited() bool { return p.Number != nil && len(p.Spread) == 0 && !p.HasCEL() }

// scaledByOthers reports whether the scores of all others stay the same without a cluster: for each resource, another cluster passes that has no
// more, and one that has no less.
func (p *Program) scaledByOthers(ctx context.Context, m *Meter, c *fleet.ClusterInfo, seen Seen) bool {
	for i := range p.Prioritizers {
		one := &p.Prioritizers[i]
		of, isResource := one.AmountOf()
		if one.Weight == 0 || !isResource || !of(c).Reported {
			continue
		}
		if seen.Others == nil || !p.between(ctx, m, c, of, seen) {
			return false
		}
	}
	return true
}

func (p *Program) between(ctx context.Context, m *Meter, c *fleet.ClusterInfo, of func(*fleet.ClusterInfo) fleet.Amount, seen Seen) bool {
	var less, more bool
	looked := 0
	for other := range seen.Others {
		looked++
		if looked > maxOthers {
			return false
		}
		a := of(other)
		if other.Name() == c.Name() || !a.Reported || less && a.Value < of(c).Value || more && a.Value > of(c).Value ||
			p.Filter(ctx, other, seen.Scores, m, false, seen.Now).By != Passed {
			continue
		}
		less, more = less || a.Value <= of(c).Value, more || a.Value >= of(c).Value
		if less && more {
			return true
		}
	}
	return false
}

// scoresDecide reports whether scores have an effect. They have none if all clusters are chosen, in the order of their names.
func (p *Program) scoresDecide() bool { return p.Number != nil || p.ByScore || len(p.Spread) > 0 }

// TouchesScore reports whether a change of a cluster's AddOnPlacementScore of a name can change anything that the placement shows. before or after
// may be nil.
func (p *Program) TouchesScore(
	ctx context.Context, c *fleet.ClusterInfo, name string, before, after *clusterv1alpha1.AddOnPlacementScore, seen Seen,
) (yes bool, cost uint64) {
	switch {
	case p.Misconfigured != nil:
		return false, 0
	case p.Reads[name] || p.Reads[""]:
		// Other predicates may match now.
		return true, 0
	case !p.scoresDecide() || !p.prioritizes(name), !seen.Chosen && p.isLimited() && p.isNoBetter(name, before, after):
		return false, 0
	}
	m := &Meter{Left: touchCost}
	v := p.Filter(ctx, c, seen.Scores, m, seen.Chosen, seen.Now)
	return v.By == Passed || m.Empty(), touchCost - m.Left
}

// isNoBetter reports whether no prioritizer gives a cluster a higher score for its AddOnPlacementScore of a name than before the change.
func (p *Program) isNoBetter(name string, before, after *clusterv1alpha1.AddOnPlacementScore) bool {
	for _, object := range []*clusterv1alpha1.AddOnPlacementScore{before, after} {
		if object != nil && object.Status.ValidUntil != nil {
			return false // When it expires, the cluster may be better.
		}
	}
	for i := range p.Prioritizers {
		if one := &p.Prioritizers[i]; one.Resource == name && one.Weight*(one.ScoreOf(after)-one.ScoreOf(before)) > 0 {
			return false
		}
	}
	return true
}

// prioritizes reports whether the AddOnPlacementScores of that name count.
func (p *Program) prioritizes(name string) bool {
	for i := range p.Prioritizers {
		if p.Prioritizers[i].Weight != 0 && p.Prioritizers[i].Resource == name {
			return true
		}
	}
	return false
}
