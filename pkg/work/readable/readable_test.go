// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package readable

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func secret(version, kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": kind, "type": "Opaque", "immutable": true, "more": "s3cret",
		"metadata":   map[string]any{"name": "s", "labels": map[string]any{"a": "b"}, "annotations": map[string]any{"last-applied": "s3cret"}},
		"data":       map[string]any{"password": "s3cret"},
		"stringData": map[string]any{"password": "s3cret"},
	}}
}

func TestOf(t *testing.T) {
	for _, test := range []struct {
		version, kind string
		whole         bool
	}{
		{"v1", "Secret", false},
		{"v2", "Secret", false},
		{"", "", false},
		{"", "Secret", false},
		{"v1", "", false},
		{"a/b/c", "ConfigMap", false},
		{"v1", "ConfigMap", true},
		{"example.com/v1", "Secret", true},
	} {
		object := secret(test.version, test.kind)
		fields, whole := Of(object)
		if whole != test.whole || strings.Contains(fmt.Sprint(fields), "s3cret") != test.whole {
			t.Errorf("%s %s: whole %v, %v", test.version, test.kind, whole, fields)
		}
		if !whole && fmt.Sprintf("%v %v %v", fields["type"], fields["immutable"], fields["metadata"]) != "Opaque true map[labels:map[a:b] name:s]" {
			t.Errorf("%s %s: %v", test.version, test.kind, fields)
		}
		if fmt.Sprint(object) != fmt.Sprint(secret(test.version, test.kind)) {
			t.Errorf("%s %s: the object was changed: %v", test.version, test.kind, object)
		}
	}
}
