// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
)

// Placement returns a placement that is scheduled, or nil.
func (h *Scheduler) Placement(key types.NamespacedName) *clusterv1beta1.Placement {
	if s := h.placements[key]; s != nil {
		return s.placement
	}
	return nil
}

// Decision returns a known decision, or nil.
func (h *Scheduler) Decision(name types.NamespacedName) *clusterv1beta1.PlacementDecision {
	return h.decisions[h.owner[name]][name.Name]
}

// State returns the current state for a placement of the namespace. Explanations of a placement use it, too.
func (h *Scheduler) State(placement *clusterv1beta1.Placement, now time.Time) run.Snapshot {
	key := types.NamespacedName{Namespace: placement.Namespace, Name: placement.Name}
	return run.Snapshot{
		Now: now, Placement: placement, Decisions: slices.Collect(maps.Values(h.decisions[key])),
		Bindings: slices.Collect(maps.Keys(h.bindings[key.Namespace])), Clusters: h.fleet, Scores: h.scores, Load: h.loads.Others(key),
	}
}
