// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ForCache transforms an object for a cache: it removes the managedFields, which are large. It also removes apiVersion and kind from a typed object:
// client-go omits both in the items of lists and removes them from the objects of watches, so that the content of a cache would depend on how it was
// read. It is a cache.TransformFunc.
func ForCache(in any) (any, error) {
	// An object without managedFields is not written to: informers may share it (kubernetes/kubernetes#124337).
	if object, err := meta.Accessor(in); err == nil && object.GetManagedFields() != nil {
		object.SetManagedFields(nil)
	}
	switch object := in.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata: // no other field identifies their kind
	case runtime.Object:
		if kind := object.GetObjectKind(); !kind.GroupVersionKind().Empty() {
			kind.SetGroupVersionKind(schema.GroupVersionKind{})
		}
	}
	return in, nil
}
