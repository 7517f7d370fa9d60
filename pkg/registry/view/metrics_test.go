// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember"
)

// observed returns the number of observations of a histogram for a derived resource.
func observed(t *testing.T, name, resource string) (count uint64) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	must(t, err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "resource" && label.GetValue() == resource {
					count += m.GetHistogram().GetSampleCount()
				}
			}
		}
	}
	return count
}

// TestMetrics_RebuildsAndChanges: the first reader causes a rebuild, and the lag of a change that reaches watches is measured. Other tests run
// concurrently, and can only add to both.
func TestMetrics_RebuildsAndChanges(t *testing.T) {
	const rebuilds, lags = "clusterhub_membership_rebuild_duration_seconds", "clusterhub_membership_lag_seconds"
	resource := clustersetmember.Resource.String()
	h := twoSets(t)
	before := observed(t, rebuilds, resource)
	client := h.client(h.replica(), admin)
	expectNames(t, client.names(), "c1.a", "c2.a", "c1.b", "c4.b")
	if after := observed(t, rebuilds, resource); after <= before {
		t.Errorf("%d rebuilds, which were %d before the first reader", after, before)
	}
	before = observed(t, lags, resource)
	h.cluster("c9", labelled("region=apac"))
	client.awaitNames("c1.a", "c2.a", "c9.a", "c1.b", "c4.b")
	if after := observed(t, lags, resource); after <= before {
		t.Errorf("%d changes were timed, which were %d before one", after, before)
	}
}
