// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
)

// TestNamespaced_FitsObject: the record of the largest work fits into an object, and a larger one is rejected before any write.
func TestNamespaced_FitsObject(t *testing.T) {
	h := &home{T: t, client: worktest.Client(t), namespace: worktest.Namespace(t)}
	m := h.agent("", "")
	r := h.make(m, strings.Repeat("w", 188))
	many := func(n, length int) (all []AppliedResource) {
		for i := range n {
			all = append(all, AppliedResource{Target: h.target(fmt.Sprintf("%0*d", length, i)), UID: "123e4567-e89b-12d3-a456-426614174000"})
		}
		return all
	}
	h.check(m.SetResources(t.Context(), r, many(1024, 253)))
	if read := h.find(m, strings.Repeat("w", 188)); len(read.Resources) != 1024 {
		t.Errorf("%d are read", len(read.Resources))
	}
	version := r.Version()
	elsewhere := h.target("x")
	elsewhere.Namespace = "elsewhere"
	for want, resources := range map[string][]AppliedResource{
		"expected at most 2048 objects and 786432 bytes": many(2049, 10),
		"got 2048 and ":                          many(2048, 400),
		"is not in the namespace " + h.namespace: {{Target: elsewhere}},
	} {
		if err := m.SetResources(t.Context(), r, resources); err == nil || !strings.Contains(err.Error(), want) || r.Version() != version {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestNamespaced_AgentOfClusterHasPriority: an agent of the whole cluster has priority. Its records cannot be read here.
func TestNamespaced_AgentOfClusterHasPriority(t *testing.T) {
	m := NewNamespaced(worktest.Client(t), worktest.Namespace(t), HubHash(t.Name()), "")
	ref := metav1.OwnerReference{APIVersion: apply.WorkGroup + "/v1", Kind: apply.AppliedKind, Name: "x", UID: "x"}
	if rival, err := m.OtherOwner(t.Context(), ref); err != nil || rival != "x of an agent of the whole cluster" {
		t.Errorf("the rival is %q, %v", rival, err)
	}
}
