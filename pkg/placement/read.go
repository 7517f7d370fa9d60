// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
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
func (h *Scheduler) State(placement *clusterv1beta1.Placement, now time.Time) Snapshot {
	key := types.NamespacedName{Namespace: placement.Namespace, Name: placement.Name}
	return Snapshot{
		Now: now, Placement: placement, Decisions: slices.Collect(maps.Values(h.decisions[key])),
		Bindings: slices.Collect(maps.Keys(h.bindings[key.Namespace])), Clusters: h.fleet, Scores: h.scores, Load: h.loads.Others(key),
	}
}

// Owners returns the owner references of the decisions of a placement: it is the only owner, so that they are deleted with it, whatever else
// exists.
func Owners(p *clusterv1beta1.Placement) []metav1.OwnerReference {
	// Without blockOwnerDeletion: nothing waits for the deletion of decisions.
	return []metav1.OwnerReference{{
		APIVersion: clusterv1beta1.SchemeGroupVersion.String(), Kind: "Placement", Name: p.Name, UID: p.UID, Controller: new(true),
	}}
}

// owned reports whether a decision has the right owners. A decision of an earlier Placement of the same name is deleted with that one.
func owned(d *clusterv1beta1.PlacementDecision, p *clusterv1beta1.Placement) bool {
	return len(d.OwnerReferences) == 1 && metav1.IsControlledBy(d, p)
}
