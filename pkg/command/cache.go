// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ForCache transforms what a cache is to hold: an object without its managedFields, which are large. A typed object has no
// apiVersion and kind either: client-go leaves both in the items of lists and takes them off the objects of watches, so that what a
// cache holds would depend on how it came. It is a cache.TransformFunc.
func ForCache(in any) (any, error) {
	// What has none is not written to: informers may share it (kubernetes/kubernetes#124337).
	if object, err := meta.Accessor(in); err == nil && object.GetManagedFields() != nil {
		object.SetManagedFields(nil)
	}
	switch object := in.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata: // nothing else says what they are
	case runtime.Object:
		if kind := object.GetObjectKind(); !kind.GroupVersionKind().Empty() {
			kind.SetGroupVersionKind(schema.GroupVersionKind{})
		}
	}
	return in, nil
}
