// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"slices"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

// Compared are the clusters that one is compared with.
type Compared uint8

// A score can depend on no other cluster, on those of the placement, or on all of the hub.
const (
	WithNone Compared = iota
	WithPlacement
	WithHub
)

// Compares returns the clusters that the scores of a prioritizer depend on.
func (p *Prioritizer) Compares() Compared {
	switch {
	case p.Resource != "" || p.Name == clusterv1beta1.PrioritizerSteady:
		return WithNone
	case p.Name == clusterv1beta1.PrioritizerBalance:
		return WithHub
	}
	return WithPlacement
}

// NeedsScores reports whether an explanation depends on any AddOnPlacementScore.
func (p *Program) NeedsScores() bool {
	return len(p.Reads) > 0 || slices.ContainsFunc(p.Prioritizers, func(one Prioritizer) bool { return one.Weight != 0 && one.Resource != "" })
}

// NeedsLoad reports whether an explanation depends on the decisions of other placements.
func (p *Program) NeedsLoad() bool {
	return slices.ContainsFunc(p.Prioritizers, func(one Prioritizer) bool { return one.Weight != 0 && one.Compares() == WithHub })
}

// ChoosesFrom reports whether a placement chooses clusters of a set that is bound to its namespace.
func (p *Program) ChoosesFrom(set string) bool {
	return len(p.ClusterSets) == 0 || slices.Contains(p.ClusterSets, set)
}
