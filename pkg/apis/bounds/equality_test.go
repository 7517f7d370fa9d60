// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"bytes"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestSemantic_ComparesBytesAtOnce fails if bytes are compared one by one, by reflection, which allocates.
func TestSemantic_ComparesBytesAtOnce(t *testing.T) {
	a, b := runtime.RawExtension{Raw: bytes.Repeat([]byte("x"), 100_000)}, runtime.RawExtension{Raw: bytes.Repeat([]byte("x"), 100_000)}
	if allocations := testing.AllocsPerRun(1, func() { equality.Semantic.DeepEqual(a, b) }); allocations > 100 {
		t.Errorf("%.0f allocations, want at most 100", allocations)
	}
	b.Raw[99_999] = 'y'
	if equality.Semantic.DeepEqual(a, b) {
		t.Error("different bytes are equal")
	}
	if !equality.Semantic.DeepEqual(runtime.RawExtension{}, runtime.RawExtension{Raw: []byte{}}) {
		t.Error("nil differs from no bytes")
	}
}
