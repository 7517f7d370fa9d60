// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readable says what feedback and condition rules may read of an object. Whoever writes a work reads by them what the agent
// may read in the managed cluster, and a status on the hub is for many to see.
package readable

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Limits is what an error says of an object that is not read as a whole.
const Limits = "of a Secret, and of an object whose kind is not known, only type, immutable and metadata without annotations are read"

// Of is what may be read of an object. Of a Secret, whole is false: its data are not in it, nor are its annotations, where kubectl
// apply keeps a copy of them. It is the object itself, or shares its values: it must not be changed.
func Of(object *unstructured.Unstructured) (fields map[string]any, whole bool) {
	kind := object.GroupVersionKind()
	if kind.Kind != "" && kind.Version != "" && (kind.Group != "" || kind.Kind != "Secret") {
		return object.Object, true
	}
	fields = map[string]any{}
	for _, name := range []string{"apiVersion", "kind", "type", "immutable"} {
		// Nothing but plain values: another server may have made them.
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
