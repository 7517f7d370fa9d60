// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import (
	"maps"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

// The metrics have no label whose values users choose.
func TestMetrics_OfRun(t *testing.T) {
	p := place(1)
	p.Spec.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions = []string{`managedCluster.metadata.name == "c1"`}
	p.Spec.PrioritizerPolicy.Configurations = []clusterv1beta1.PrioritizerConfig{{ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{
		Type: clusterv1beta1.ScoreCoordinateTypeAddOn, AddOn: &clusterv1beta1.AddOnScore{ResourceName: "theirs", ScoreName: "theirs"}}}}
	f := newFixture(t, managed("c1", "a=b"), managed("c2", "a=b"), p)
	f.settle()
	registry := prometheus.NewPedanticRegistry()
	for _, c := range f.process.metrics.all() {
		if err := registry.Register(c); err != nil {
			t.Fatal(err)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			series := family.GetName()
			for _, label := range m.GetLabel() {
				series += " " + label.GetName() + "=" + label.GetValue()
			}
			seen[series] = m.GetHistogram().GetSampleCount() > 0
		}
	}
	plugin := "scheduling_plugin_duration_seconds plugin_name="
	want := []string{
		"scheduling_bind_duration_seconds", "scheduling_cel_runtime_duration_seconds",
		plugin + "AddOn plugin_type=prioritizer", plugin + "Balance plugin_type=prioritizer",
		plugin + "Predicate,TaintToleration plugin_type=filter", plugin + "Steady plugin_type=prioritizer",
		"scheduling_scheduling_duration_seconds",
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, want) {
		t.Errorf("measured: %q", got)
	}
	for series, counted := range seen {
		if !counted {
			t.Errorf("%s has no samples", series)
		}
	}
}
