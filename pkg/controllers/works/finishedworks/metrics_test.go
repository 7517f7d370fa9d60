// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package finishedworks

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

func conditioned(applied, available metav1.ConditionStatus) *workv1.ManifestWork {
	return &workv1.ManifestWork{Status: workv1.ManifestWorkStatus{Conditions: []metav1.Condition{
		{Type: workv1.WorkApplied, Status: applied}, {Type: workv1.WorkAvailable, Status: available}}}}
}

func TestTally_CountsWorksAndLimitsLabels(t *testing.T) {
	tally := newTally()
	for _, object := range []*workv1.ManifestWork{conditioned("True", "False"), conditioned("True", "Mine"), {}} {
		tally.Observe(kit.Change[*workv1.ManifestWork]{After: object})
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
	if want := (map[string]float64{"true true ": 0, "true false ": 1, "true unknown ": 1, "false true ": 0, "false false ": 0, "false unknown ": 0, "unknown true ": 0, "unknown false ": 0, "unknown unknown ": 1}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
