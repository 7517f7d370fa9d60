// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package states_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/ui/states"
)

const (
	clusters  = "managedclusters.cluster.open-cluster-management.io"
	works     = "manifestworks.work.open-cluster-management.io"
	rollouts  = "manifestworkreplicasets.work.open-cluster-management.io"
	available = `{"type":"ManagedClusterConditionAvailable","status":"True","lastTransitionTime":"2026-11-24T10:00:00Z"}`
	lost      = `{"type":"ManagedClusterConditionAvailable","status":"Unknown","message":"no lease"}`
)

// TestOf verifies the words and tones of states.
func TestOf(t *testing.T) {
	for name, test := range map[string]struct {
		resource, object, cell string
		text                   string
		tone                   states.Tone
		more                   string
	}{
		"a cluster that is available": {clusters, `{"spec":{"hubAcceptsClient":true},"status":{"conditions":[` + available + `]}}`, "available", "Available", states.Good, ""},
		"a cluster that is lost":      {clusters, `{"spec":{"hubAcceptsClient":true},"status":{"conditions":[` + lost + `]}}`, "available", "Unknown", states.NotKnown, "no lease"},
		// What its agent reported before it was denied does not count.
		"a cluster that is denied": {clusters, `{"status":{"conditions":[` + available + `]}}`, "available", "Waits to be accepted", states.Wait, ""},
		"a cluster of clusterview": {"managedclusters.clusterview.open-cluster-management.io", `{"spec":{"hubAcceptsClient":true}}`, "accepted", "Yes", states.Good, ""},
		"a member":                 {"clustersetmembers.view.clusterhub.dev", `{"status":{"accepted":true,"available":"False"}}`, "available", "Not available", states.Bad, ""},
		"a set":                    {"managedclustersets.clusterview.open-cluster-management.io", `{"status":{"conditions":[{"type":"ClusterSetEmpty","status":"False","message":"4 ManagedClusters selected"}]}}`, "state", "4 ManagedClusters selected", "", ""},
		"a binding":                {"managedclustersetbindings.cluster.open-cluster-management.io", `{"status":{"conditions":[{"type":"Bound","status":"False","message":"no set"}]}}`, "state", "Not bound", states.Bad, "no set"},
		"a placement": {"placements.cluster.open-cluster-management.io", `{"status":{"conditions":[{"type":"PlacementSatisfied","status":"True"},{"type":"PlacementMisconfigured","status":"True","message":"why"}]}}`,
			"state", "Misconfigured", states.Bad, "why"},
		"a work":                    {works, `{"metadata":{"generation":2},"status":{"conditions":[{"type":"Applied","status":"True","observedGeneration":2}]}}`, "applied", "Applied", states.Good, ""},
		"a work of an earlier spec": {works, `{"metadata":{"generation":2},"status":{"conditions":[{"type":"Applied","status":"True","observedGeneration":1}]}}`, "applied", "Not known yet", states.NotKnown, ""},
		"a rollout without clusters": {rollouts, `{"status":{"conditions":[{"type":"PlacementVerified","status":"False","message":"none"}]}}`, "state", "No clusters",
			states.Bad, "none"},
		"a rollout": {rollouts, `{"status":{"conditions":[{"type":"PlacementVerified","status":"True"},{"type":"PlacementRolledOut","status":"False","reason":"Progressing","message":"1 of 2"}]}}`,
			"state", "Rolling out", states.Wait, "1 of 2"},
		"a rollout with failures": {rollouts, `{"status":{"summary":{"degraded":3}}}`, "degraded", "3", states.Bad, ""},
		"a request that waits":    {"accessrequests.clusters.openmcp.cloud", `{"status":{"phase":"Pending","conditions":[{"type":"Prepared","status":"False","reason":"InvalidReference","message":"not found"}]}}`, "waits", "InvalidReference: not found", "", ""},
		"a request with access":   {"accessrequests.clusters.openmcp.cloud", `{"status":{"phase":"Granted"}}`, "state", "Granted", states.Good, ""},
		"an edge placement":       {"edgeplacements.edge.clusterhub.dev", `{"status":{"state":"Failed","reason":"A","message":"b"}}`, "state", "Failed", states.Bad, "A: b"},
		"an edge placement that is new": {"edgeplacements.edge.clusterhub.dev", `{"status":{"state":"SomethingNew"}}`, "state", "SomethingNew",
			states.NotKnown, ""},
		"a certificate request": {"certificatesigningrequests.certificates.k8s.io", `{"status":{"certificate":"eA==","conditions":[{"type":"Approved","status":"True"}]}}`, "state", "Issued", states.Good, ""},
		"a denied one":          {"certificatesigningrequests.certificates.k8s.io", `{"status":{"conditions":[{"type":"Denied","status":"True","message":"no"}]}}`, "state", "Denied", states.Bad, "no"},
		"an API service":        {"apiservices.apiregistration.k8s.io", `{"status":{"conditions":[{"type":"Available","status":"False","message":"no"}]}}`, "state", "Not available", states.Bad, "no"},
	} {
		s := states.Of(test.resource, []byte(test.object))
		if s == nil {
			t.Errorf("%s: no states", name)
			continue
		}
		if c := s.Cells[test.cell]; c.Text != test.text || c.Tone != test.tone || c.More != test.more {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if s := states.Of("secrets", []byte(`{}`)); s != nil {
		t.Errorf("of a Secret: %+v", s)
	}
	if s := states.Of(clusters, []byte(`{"spec":[]}`)); s != nil {
		t.Errorf("of an object that cannot be read: %+v", s)
	}
}

// TestOf_UnknownIsNeverGood verifies that objects without a status are not shown as good.
func TestOf_UnknownIsNeverGood(t *testing.T) {
	for _, resource := range slices.Sorted(maps.Keys(states.Resources())) {
		s := states.Of(resource, []byte(`{"spec":{"hubAcceptsClient":false}}`))
		if s == nil {
			t.Errorf("%s: no states", resource)
			continue
		}
		for name, c := range s.Cells {
			if c.Tone == states.Good {
				t.Errorf("%s: %s is %+v", resource, name, c)
			}
		}
	}
}

// TestOf_Conditions verifies the tones of conditions, whose True may be bad, or say nothing about health.
func TestOf_Conditions(t *testing.T) {
	s := states.Of(works, []byte(`{"status":{"conditions":[{"type":"Applied","status":"False"},{"type":"Degraded","status":"True"},{"type":"Degraded","status":"False"},`+
		`{"type":"Odd","status":"True"},{"type":"Odd","status":"Unknown"}],"resourceStatus":{"manifests":[{"conditions":[{"type":"Applied","status":"True"}]}]}}}`))
	if want := []states.Tone{states.Bad, states.Bad, states.Good, "", states.NotKnown}; !slices.Equal(s.Conditions, want) {
		t.Errorf("the tones are %q, not %q", s.Conditions, want)
	}
	if m := s.Manifests; len(m) != 1 || m[0]["applied"].Tone != states.Good || m[0]["available"].Tone != states.NotKnown {
		t.Errorf("the manifests are %+v", m)
	}
}
