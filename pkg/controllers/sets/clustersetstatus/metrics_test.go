// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetstatus

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// measured returns the sizes in the metrics, by set, and the number of sets.
func measured(t *testing.T, m *members) (sets map[string]float64, number float64) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(sizes{m})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sets, number = map[string]float64{}, -1
	for _, family := range families {
		for _, one := range family.GetMetric() {
			if family.GetName() == "clusterhub_clustersets_with_members" {
				number = one.GetGauge().GetValue()
				continue
			}
			sets[one.GetLabel()[0].GetValue()] = one.GetGauge().GetValue()
		}
	}
	return sets, number
}

func TestSizes_OfLargestSets(t *testing.T) {
	m, _ := observed()
	add := func(set string, clusters int) {
		for i := range clusters {
			if err := m.Add(member(fmt.Sprintf("c%d.%s", i, set))); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A large number of sets.
	for i := range 1000 {
		add(fmt.Sprintf("small-%03d", i), 1)
	}
	add("large", 3)
	add("emptied", 1)
	if err := m.Delete(member("c0.emptied")); err != nil {
		t.Fatal(err)
	}
	if sets, number := measured(t, m); len(sets) > 0 || number >= 0 {
		t.Errorf("before all are known: %v, %v", sets, number)
	}
	close(m.synced)
	sets, number := measured(t, m)
	_, last := sets["small-098"]
	_, beyond := sets["small-099"]
	if len(sets) != maxMeasured || sets["large"] != 3 || sets["small-000"] != 1 || !last || beyond || number != 1001 {
		t.Errorf("%d series of %v sets: %v", len(sets), number, sets)
	}
}
