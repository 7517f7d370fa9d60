// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeplacements

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

func inState(state edgev1alpha1.PlacementState) *edgev1alpha1.EdgePlacement {
	return &edgev1alpha1.EdgePlacement{Status: edgev1alpha1.EdgePlacementStatus{State: state}}
}

func TestTally_CountsPlacementsByState(t *testing.T) {
	tally := newTally()
	for _, object := range []*edgev1alpha1.EdgePlacement{inState(""), inState("Running"), inState("Running"), inState("Mine"), inState("Yours")} {
		tally.Observe(kit.Change[*edgev1alpha1.EdgePlacement]{After: object})
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(tally)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		key := ""
		for _, l := range m.GetLabel() {
			key += l.GetValue() + " "
		}
		got[key] = m.GetGauge().GetValue()
	}
	if want := (map[string]float64{"Pending ": 1, "Delivering ": 0, "Running ": 2, "Failed ": 0, "Removing ": 0, "other ": 2}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
