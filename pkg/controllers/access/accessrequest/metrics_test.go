// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

func inPhase(phase string) *v1alpha1.AccessRequest {
	return &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Generation: 1, CreationTimestamp: metav1.NewTime(time.Now().Add(-3 * time.Second))},
		Status: v1alpha1.AccessRequestStatus{Status: v1alpha1.Status{Phase: phase}}}
}

func TestMetrics_PhasesAndDuration(t *testing.T) {
	m := newMetrics()
	type change = kit.Change[*v1alpha1.AccessRequest]
	pending, granted, again := inPhase(""), inPhase("Granted"), inPhase("Granted")
	again.Generation = 2
	for _, c := range []change{{After: pending}, {After: inPhase("Granted"), Known: true}, {After: inPhase("Mine")}, {After: inPhase("Yours")}, {After: inPhase("Denied")},
		{Before: pending, After: granted}, {Before: granted, After: inPhase("Pending")}, {Before: inPhase("Pending"), After: again}} {
		m.observe(c)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, s := range family.GetMetric() {
			if h := s.GetHistogram(); h != nil {
				if h.GetSampleCount() != 1 || h.GetSampleSum() < 3 {
					t.Errorf("%d requests took %v seconds together, want one", h.GetSampleCount(), h.GetSampleSum())
				}
				continue
			}
			got[s.GetLabel()[0].GetValue()] = s.GetGauge().GetValue()
		}
	}
	if want := (map[string]float64{"Pending": 0, "Granted": 2, "Denied": 1, "other": 2}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
