// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

func conditioned(status metav1.ConditionStatus) *clusterv1beta1.Placement {
	return &clusterv1beta1.Placement{Status: clusterv1beta1.PlacementStatus{Conditions: []metav1.Condition{
		{Type: clusterv1beta1.PlacementConditionSatisfied, Status: status}}}}
}

func TestTally_CountsSatisfiedPlacements(t *testing.T) {
	tally := newTally()
	for _, object := range []*clusterv1beta1.Placement{conditioned("True"), conditioned("True"), conditioned("False"), conditioned("Unknown"), {}} {
		tally.Observe(kit.Change[*clusterv1beta1.Placement]{After: object})
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
	if want := (map[string]float64{"true ": 2, "false ": 1, "unknown ": 2}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
