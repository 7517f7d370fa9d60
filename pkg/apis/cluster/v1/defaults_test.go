// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/install"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme, serializer.EnableStrict)
)

func init() { install.Install(scheme) }

// receive decodes, defaults and converts an object of a client as the server does, and rejects unknown fields.
func receive(t *testing.T, fields string) *cluster.ManagedCluster {
	t.Helper()
	data := `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster",` + fields + `}`
	object, err := runtime.Decode(codecs.UniversalDecoder(cluster.SchemeGroupVersion), []byte(data))
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return object.(*cluster.ManagedCluster)
}

func TestDefaults_LeaseDuration(t *testing.T) {
	for fields, want := range map[string]int32{
		`"metadata":{"name":"c1"}`:          60,
		`"spec":{}`:                         60,
		`"spec":null`:                       60,
		`"spec":{"leaseDurationSeconds":0}`: 60,
		`"spec":{"leaseDurationSeconds":null,"hubAcceptsClient":true}`: 60,
		`"spec":{"leaseDurationSeconds":61}`:                           61,
		`"spec":{"leaseDurationSeconds":-1}`:                           -1, // for validation to refuse
	} {
		if got := receive(t, fields).Spec.LeaseDurationSeconds; got != want {
			t.Errorf("%s: %d seconds, want %d", fields, got, want)
		}
	}
}

// The Go clients of upstream's types have no omitempty on some fields.
func TestDecoding_AcceptsNullsOfUpstreamClients(t *testing.T) {
	c := receive(t, `"metadata":{"name":"c1","creationTimestamp":null,"labels":null},
		"spec":{"hubAcceptsClient":false,"managedClusterClientConfigs":null,
			"taints":[{"key":"a","effect":"NoSelect","timeAdded":null}]},
		"status":{"conditions":null,"version":{},"capacity":null,"clusterClaims":null}`)
	if len(c.Spec.Taints) != 1 || !c.Spec.Taints[0].TimeAdded.IsZero() || c.Status.Conditions != nil {
		t.Errorf("got %+v", c)
	}
}

func TestEncoding_HasFieldsOfUpstreamClients(t *testing.T) {
	data, err := runtime.Encode(codecs.LegacyCodec(v1.SchemeGroupVersion), &cluster.ManagedCluster{
		Spec: cluster.ManagedClusterSpec{Taints: []cluster.Taint{{Key: "a"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Spec struct {
			HubAcceptsClient *bool            `json:"hubAcceptsClient"`
			Taints           []map[string]any `json:"taints"`
		} `json:"spec"`
		Status map[string]any `json:"status"`
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.Spec.HubAcceptsClient == nil {
		t.Errorf("%s has no hubAcceptsClient", data)
	}
	if added, ok := got.Spec.Taints[0]["timeAdded"]; !ok || added != nil {
		t.Errorf("%s has no timeAdded: null", data)
	}
	// kubectl wait takes conditions: null for a fault.
	if conditions, ok := got.Status["conditions"]; ok {
		t.Errorf("%s has conditions: %v", data, conditions)
	}
}

func TestDecoding_RejectsUnknownFields(t *testing.T) {
	for _, fields := range []string{`"spec":{"hubAccepts":true}`, `"spec":{"hubAcceptsClient":"yes"}`, `"spec":[]`} {
		data := `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster",` + fields + `}`
		if _, err := runtime.Decode(codecs.UniversalDecoder(cluster.SchemeGroupVersion), []byte(data)); err == nil {
			t.Errorf("%s is taken", fields)
		}
	}
}

func TestFieldSelectors_OfClusters(t *testing.T) {
	gvk := v1.SchemeGroupVersion.WithKind("ManagedCluster")
	for _, label := range []string{"metadata.name", "spec.hubAcceptsClient"} {
		if l, v, err := scheme.ConvertFieldLabel(gvk, label, "x"); err != nil || l != label || v != "x" {
			t.Errorf("%s: got %q, %q, %v", label, l, v, err)
		}
	}
	if _, _, err := scheme.ConvertFieldLabel(gvk, "status.version.kubernetes", "x"); err == nil {
		t.Error("status.version.kubernetes: is a field selector")
	}
}
