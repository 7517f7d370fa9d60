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

// Placement is one that is scheduled, or nil.
func (h *Hub) Placement(key types.NamespacedName) *clusterv1beta1.Placement {
	if s := h.placements[key]; s != nil {
		return s.placement
	}
	return nil
}

// Decision is one that is known, or nil.
func (h *Hub) Decision(name types.NamespacedName) *clusterv1beta1.PlacementDecision {
	return h.decisions[h.owner[name]][name.Name]
}

// State is the hub as a placement of the namespace sees it now. Whoever explains a placement runs it against this.
func (h *Hub) State(placement *clusterv1beta1.Placement, now time.Time) State {
	key := types.NamespacedName{Namespace: placement.Namespace, Name: placement.Name}
	return State{
		Now: now, Placement: placement, Decisions: slices.Collect(maps.Values(h.decisions[key])),
		Bindings: slices.Collect(maps.Keys(h.bindings[key.Namespace])), Clusters: h.fleet, Scores: h.scores, Load: h.loads.Others(key),
	}
}

// Owners are the owner references of the decisions of a placement: it is the only owner, so that they go when it does, whatever else
// is there.
func Owners(p *clusterv1beta1.Placement) []metav1.OwnerReference {
	// Without blockOwnerDeletion: nothing waits for decisions to be gone.
	return []metav1.OwnerReference{{
		APIVersion: clusterv1beta1.SchemeGroupVersion.String(), Kind: "Placement", Name: p.Name, UID: p.UID, Controller: new(true),
	}}
}

// owned says that a decision has the owners that it should have. One that another Placement of the same name had goes with that one.
func owned(d *clusterv1beta1.PlacementDecision, p *clusterv1beta1.Placement) bool {
	return len(d.OwnerReferences) == 1 && metav1.IsControlledBy(d, p)
}
