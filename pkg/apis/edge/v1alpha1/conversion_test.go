// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// Each field that a selector may ask for is one that the kind has.
func TestFieldSelectors_Exist(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for kind, fields := range fieldSelectors {
		gvk := SchemeGroupVersion.WithKind(kind)
		object, err := scheme.New(gvk)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range fields {
			in := reflect.TypeOf(object).Elem()
			for _, part := range strings.Split(name, ".") {
				field, ok := in.FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, part) })
				if !ok {
					t.Fatalf("%s has no field %s", kind, name)
				}
				in = field.Type
			}
			if label, value, err := scheme.ConvertFieldLabel(gvk, name, "x"); err != nil || label != name || value != "x" {
				t.Errorf("%s by %s: %q, %q, %v", kind, name, label, value, err)
			}
		}
		if _, _, err := scheme.ConvertFieldLabel(gvk, "spec.label", "x"); err == nil || !strings.Contains(err.Error(), "metadata.name") {
			t.Errorf("%s by spec.label: %v", kind, err)
		}
		_, _, err = scheme.ConvertFieldLabel(gvk, "metadata.namespace", "x")
		if (err != nil) != (kind == "EdgeNode") {
			t.Errorf("%s by its namespace: %v", kind, err)
		}
	}
}
