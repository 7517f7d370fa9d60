// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permission_test

import (
	"maps"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// refusals returns the values of the metric for a plugin.
func refusals(t *testing.T, plugin string) map[string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "clusterhub_permission_refusals_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["plugin"] == plugin {
				got[labels["verb"]+" "+labels["resource"]] += m.GetCounter().GetValue()
			}
		}
	}
	return got
}

func TestDecision_RefusalsAreCountedByRule(t *testing.T) {
	const plugin = "Counted"
	before := refusals(t, plugin) // of the same test, if it runs several times
	g := permission.NewGuard(plugin)
	g.SetAuthorizer(&at.Authorizer{Grants: at.Labels("held")})
	request := at.Request{Object: at.Cluster("c1")}.Attributes()
	for _, rule := range []rbac.Permission{at.Label("held"), at.Label("a"), at.Label("b"), at.Rule("delete", "g", "sets", "s")} {
		_ = g.Require(t.Context(), request, "do this", rule)
	}
	if _, err := g.Excused(t.Context(), request, at.Label("c")); err != nil {
		t.Fatal(err)
	}
	got := refusals(t, plugin)
	for rule := range got {
		got[rule] -= before[rule]
	}
	if want := map[string]float64{"create managedclusters/label": 2, "delete sets": 1}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
