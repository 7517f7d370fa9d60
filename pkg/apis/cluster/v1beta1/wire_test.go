// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/install"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

func codec() runtime.Codec {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme).LegacyCodec(v1beta1.SchemeGroupVersion)
}

// served returns the server's response to an object that a client sent.
func served(t *testing.T, sent string) string {
	t.Helper()
	object, err := runtime.Decode(codec(), []byte(sent))
	if err != nil {
		t.Fatal(err)
	}
	data, err := runtime.Encode(codec(), object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Readers of the field take the list as it is, and every value in it as text: null, or a number that nobody asked for, ends them.
func TestPlacementDecision_AlwaysHasListAndReasons(t *testing.T) {
	const head = `{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"PlacementDecision","metadata":{"name":"a"}`
	for sent, want := range map[string]string{
		head + `}`:                             `"decisions":[]`,
		head + `,"status":{}}`:                 `"decisions":[]`,
		head + `,"status":{"decisions":null}}`: `"decisions":[]`,
		head + `,"status":{"decisions":[{"clusterName":"c1"}]}}`:                         `"decisions":[{"clusterName":"c1","reason":""}]`,
		head + `,"status":{"decisions":[{"clusterName":"c1","reason":"r","score":-3}]}}`: `"decisions":[{"clusterName":"c1","reason":"r","score":-3}]`,
	} {
		if got := served(t, sent); !strings.Contains(got, want) || strings.Contains(got, "null,") {
			t.Errorf("%s is served as %s, want %s", sent, got, want)
		}
	}
	list, err := runtime.Encode(codec(), &cluster.PlacementDecisionList{Items: make([]cluster.PlacementDecision, 1)})
	if err != nil || !strings.Contains(string(list), `"decisions":[]`) {
		t.Errorf("%v, a list is served as %s", err, list)
	}
}

func TestPlacement_HasDefaults(t *testing.T) {
	const head = `{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement","metadata":{"name":"a"},"spec":`
	for sent, wants := range map[string][]string{
		`{}`: {`"mode":"Additive"`, `"clustersPerDecisionGroup":"100%"`, `"sortBy":"ClusterName"`, `"scoreRateLimit":"1m"`},
		// Clients written in Go send this for fields that are not set.
		`{"prioritizerPolicy":{"mode":""},"spreadPolicy":{},"decisionStrategy":{"groupStrategy":{"clustersPerDecisionGroup":0}}}`: {
			`"mode":"Additive"`, `"clustersPerDecisionGroup":"100%"`},
		`{"prioritizerPolicy":{"mode":"Exact","configurations":[{"scoreCoordinate":{"builtIn":"Steady"}}]}}`: {
			`"mode":"Exact"`, `"type":"BuiltIn"`, `"weight":1`},
		`{"prioritizerPolicy":{"configurations":[{"scoreCoordinate":{"builtIn":"Steady"},"weight":0}]}}`: {`"weight":0`},
		`{"spreadPolicy":{"spreadConstraints":[{"topologyKey":"zone","topologyKeyType":"Label","maxSkew":0,"whenUnsatisfiable":""}]}}`: {
			`"maxSkew":1`, `"whenUnsatisfiable":"ScheduleAnyway"`},
		`{"tolerations":[{"key":"a"}]}`:                                         {`"operator":"Equal"`},
		`{"decisionStrategy":{"groupStrategy":{"clustersPerDecisionGroup":2}}}`: {`"clustersPerDecisionGroup":2`},
	} {
		// Clients written in Go send null for lists that are not set.
		got := served(t, head+sent+`,"status":{"conditions":null,"decisionGroups":[{"decisions":null}]}}`)
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s is served as %s, want %s", sent, got, want)
			}
		}
		for _, list := range []string{"conditions", "decisionGroups", "decisions"} {
			if strings.Contains(got, `"`+list+`":null`) {
				t.Errorf("%s is null in %s", list, got)
			}
		}
	}
}
