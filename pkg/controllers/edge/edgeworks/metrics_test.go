// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeworks

import (
	"testing"

	dto "github.com/prometheus/client_model/go"
)

func TestMetrics_CountTheWritesOfWorks(t *testing.T) {
	counted := func(operation string) float64 {
		var m dto.Metric
		if err := writes.WithLabelValues(operation, "written").Write(&m); err != nil {
			t.Fatal(err)
		}
		return m.GetCounter().GetValue()
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
