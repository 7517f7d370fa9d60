// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readable limits what feedback and condition rules may read of an object. With these rules, a user who writes a work reads what the agent
// may read in the managed cluster, and many users can read a status on the hub.
package readable

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Limits is the text of an error about an object that is only read in part.
const Limits = "of a Secret, and of an object whose kind is not known, only type, immutable and metadata without annotations are read"

// Of returns the fields of an object that may be read. whole is false for a Secret: the fields do not include its data, nor its annotations, in which
// kubectl apply stores a copy of the data. The fields are the object itself, or share its values: they must not be changed.
func Of(object *unstructured.Unstructured) (fields map[string]any, whole bool) {
	kind := object.GroupVersionKind()
	if kind.Kind != "" && kind.Version != "" && (kind.Group != "" || kind.Kind != "Secret") {
		return object.Object, true
	}
	fields = map[string]any{}
	for _, name := range []string{"apiVersion", "kind", "type", "immutable"} {
		// Only plain values are copied: another server may have set others.
		switch value := object.Object[name].(type) {
		case string, bool:
			fields[name] = value
		}
	}
	if metadata, ok := object.Object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "annotations")
		delete(metadata, "managedFields")
		fields["metadata"] = metadata
	}
	return fields, false
}
