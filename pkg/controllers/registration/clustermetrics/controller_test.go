// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermetrics

import (
	"fmt"
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// byLabel handles the clusters with a label that is its name.
type byLabel struct {
	driver.Driver
	name string
}

func (d byLabel) Name() string                             { return d.name }
func (d byLabel) Handles(c *clusterv1.ManagedCluster) bool { return c.Labels[d.name] != "" }

func newCluster(d string, accepted, decided bool) any {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{d: "x"}}}
	c.Spec.HubAcceptsClient = accepted
	if decided {
		c.Status.Conditions = []metav1.Condition{{Type: registration.ConditionHubAccepted}}
	}
	return c
}

func collected(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			key := family.GetName()
			for _, l := range m.GetLabel() {
				key += fmt.Sprintf(" %s=%s", l.GetName(), l.GetValue())
			}
			got[key] = m.GetGauge().GetValue()
		}
	}
	return got
}

func TestCollector_CountsByDriverAndState(t *testing.T) {
	synced := false
	c := &collector{drivers: driver.Drivers{byLabel{name: "a"}, byLabel{name: "b"}}, synced: func() bool { return synced }, clusters: func() []any {
		return []any{newCluster("a", true, true), newCluster("a", true, false), newCluster("a", false, true), newCluster("b", false, false),
			newCluster("c", true, true), "what is no cluster"}
	}}
	if got := collected(t, c); len(got) > 0 {
		t.Errorf("before all are known: %v", got)
	}
	synced = true
	const of = "clusterhub_managed_clusters driver="
	want := map[string]float64{of + "a state=accepted": 2, of + "a state=denied": 1, of + "a state=waiting": 0,
		of + "b state=accepted": 0, of + "b state=denied": 0, of + "b state=waiting": 1, of + "none state=accepted": 1}
	if got := collected(t, c); !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
