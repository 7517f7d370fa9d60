// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// measured returns the series that are not 0, such as "clusterhub_replicasets rolled_out 1".
func (f *fixture) measured() (all []string) {
	f.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(f.process.metrics); err != nil {
		f.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		f.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			series := family.GetName()
			for _, label := range m.GetLabel() {
				series += " " + label.GetValue()
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue()
			if h := m.GetHistogram(); h.GetSampleCount() > 0 {
				value = 10 * math.Round(h.GetSampleSum()/10)
			}
			if value != 0 {
				all = append(all, fmt.Sprint(series, " ", value))
			}
		}
	}
	return all
}

func TestMetrics_OfRollout(t *testing.T) {
	f := newFixture(t, progressive(replicaSet("p"), 1))
	f.decide("p", "c1", "c2")
	f.settle()
	f.wantMeasured("clusterhub_replicaset_clusters progressing 1", "clusterhub_replicaset_clusters waiting 1",
		"clusterhub_replicaset_work_writes_total create written 1", "clusterhub_replicasets progressing 1")
	f.report("Applied Available", "c1")
	f.settle()
	f.pass(10 * time.Second)
	f.report("Applied Available", "c1", "c2")
	f.settle()
	f.wantMeasured("clusterhub_replicaset_clusters succeeded 2", "clusterhub_replicaset_rollout_duration_seconds 10",
		"clusterhub_replicaset_work_writes_total create written 2", "clusterhub_replicasets rolled_out 1")

	if err := f.client.Delete(f.Context(), f.set()); err != nil {
		t.Fatal(err)
	}
	f.settle()
	f.wantMeasured("clusterhub_replicaset_rollout_duration_seconds 10",
		"clusterhub_replicaset_work_writes_total create written 2", "clusterhub_replicaset_work_writes_total delete written 2")
}

func (f *fixture) wantMeasured(want ...string) {
	f.Helper()
	if got := f.measured(); !slices.Equal(got, want) {
		f.Errorf("measured\n%q, want\n%q", got, want)
	}
}
