// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

func TestForCache(t *testing.T) {
	kind := metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}
	slim := metav1.ObjectMeta{Name: "a", Labels: map[string]string{"b": "c"}}
	full := slim
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	plain := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "a"}}
	managed := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "a", "managedFields": []any{}}}
	for name, test := range map[string]struct{ in, want any }{
		"an item of a list":     {&corev1.Namespace{TypeMeta: kind, ObjectMeta: full}, &corev1.Namespace{ObjectMeta: slim}},
		"an object of a watch":  {&corev1.Namespace{ObjectMeta: full}, &corev1.Namespace{ObjectMeta: slim}},
		"nothing to take off":   {&corev1.Namespace{ObjectMeta: slim}, &corev1.Namespace{ObjectMeta: slim}},
		"metadata":              {&metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: full}, &metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: slim}},
		"an untyped object":     {&unstructured.Unstructured{Object: managed}, &unstructured.Unstructured{Object: plain}},
		"what is not there now": {cache.DeletedFinalStateUnknown{Key: "a"}, cache.DeletedFinalStateUnknown{Key: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := ForCache(test.in); err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("it is %+v, %v, not %+v", got, err, test.want)
			}
		})
	}
}
