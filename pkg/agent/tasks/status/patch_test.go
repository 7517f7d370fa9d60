// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

func resources(cpu string) clusterv1.ResourceList {
	return clusterv1.ResourceList{"cpu": resource.MustParse(cpu)}
}

func TestStatus_PatchHasOnlyChangesAndVersion(t *testing.T) {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "u", ResourceVersion: "7"}}
	c.Status.Version.Kubernetes = "v1"
	c.Status.Capacity = resources("4")
	next := *c.Status.DeepCopy()
	if patch, err := statusPatch(c, next); patch != nil || err != nil {
		t.Errorf("without a change: %s, %v", patch, err)
	}
	next.Version.Kubernetes = "v2"
	patch, err := statusPatch(c, next)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := errors.Join(json.Unmarshal(patch, &got), json.Unmarshal([]byte(
		`{"metadata":{"uid":"u","resourceVersion":"7"},"status":{"version":{"kubernetes":"v2"}}}`), &want)); err != nil {
		t.Fatal(err)
	}
	if g, w := mustJSON(t, got), mustJSON(t, want); g != w {
		t.Errorf("got %s, want %s", g, w)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
