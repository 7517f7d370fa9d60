// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeworks

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestMetrics_CountWorkWrites(t *testing.T) {
	counted := func(operation string) float64 {
		t.Helper()
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(writes.WithLabelValues(operation, "written"))
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		return families[0].GetMetric()[0].GetCounter().GetValue()
	}
	created, deleted := counted("create"), counted("delete")
	f := newFixture(t)
	f.work()
	if err := f.Delete(t.Context(), f.placement()); err != nil {
		t.Fatal(err)
	}
	f.settle()
	if counted("create") != created+1 || counted("delete") != deleted+1 {
		t.Errorf("a work that came and went counts as %v and %v", counted("create")-created, counted("delete")-deleted)
	}
}
