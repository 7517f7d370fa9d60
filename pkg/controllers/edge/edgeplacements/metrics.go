// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeplacements

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

var placementsDescription = prometheus.NewDesc("clusterhub_edge_placements",
	"EdgePlacements by their state: Pending, Delivering, Running, Failed, Removing, or other.", []string{"state"}, nil)

// placementStates are the states that have series, whatever else a status may have.
var placementStates = []edgev1alpha1.PlacementState{edgev1alpha1.PlacementPending, edgev1alpha1.PlacementDelivering, edgev1alpha1.PlacementRunning,
	edgev1alpha1.PlacementFailed, edgev1alpha1.PlacementRemoving}

func newTally() *kit.Tally[*edgev1alpha1.EdgePlacement] {
	var zero [][]string
	for _, state := range placementStates {
		zero = append(zero, []string{string(state)})
	}
	return kit.NewTally(placementsDescription, func(p *edgev1alpha1.EdgePlacement) []string {
		switch {
		case p.Status.State == "":
			return []string{string(edgev1alpha1.PlacementPending)} // no controller has written it yet
		case !slices.Contains(placementStates, p.Status.State):
			return []string{"other"}
		}
		return []string{string(p.Status.State)}
	}, zero...)
}

// writes are totals over all placements: users create as many policies as they like.
var writes = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "clusterhub_edge_placement_writes_total",
	Help: "Writes of EdgePlacements."}, []string{"operation", "result"})

// wrote counts a write.
func wrote(operation string, err error) error {
	kit.CountWrite(writes, operation, err)
	return err
}
