// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package generic

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// TestPart_SharesNothingWithOldObject, which may belong to the cache.
func TestPart_SharesNothingWithOldObject(t *testing.T) {
	kind := &Kind[*cluster.ManagedCluster]{
		New:    func() *cluster.ManagedCluster { return &cluster.ManagedCluster{} },
		Spec:   func(c *cluster.ManagedCluster) any { return &c.Spec },
		Status: func(c *cluster.ManagedCluster) any { return &c.Status },
	}
	old := &cluster.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c1", Labels: map[string]string{"a": "b"}, Generation: 1},
		Spec:       cluster.ManagedClusterSpec{Taints: []cluster.Taint{{Key: "a"}}},
	}
	updated := old.DeepCopy()
	partStrategy[*cluster.ManagedCluster]{kind.strategy(runtime.NewScheme()), kind.parts()["status"]}.PrepareForUpdate(t.Context(), updated, old)
	updated.Labels["a"], updated.Spec.Taints[0].Key = "c", "c"
	if old.Labels["a"] != "b" || old.Spec.Taints[0].Key != "a" {
		t.Errorf("the old object became %+v", old)
	}
}
