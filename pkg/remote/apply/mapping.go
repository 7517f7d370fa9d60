// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Mapping is a kind of objects with its resource.
type Mapping struct {
	schema.GroupVersionKind
	Resource string
	// Global reports that the objects are in no namespace.
	Global bool
}

// Namespaced returns the Mapping of a kind whose objects are in namespaces.
func Namespaced(of schema.GroupVersion, kind, resource string) Mapping {
	return Mapping{GroupVersionKind: of.WithKind(kind), Resource: resource}
}

// Global returns the Mapping of a kind whose objects are in no namespace.
func Global(of schema.GroupVersion, kind, resource string) Mapping {
	return Mapping{GroupVersionKind: of.WithKind(kind), Resource: resource, Global: true}
}

// GVR returns the resource with its group and version.
func (m Mapping) GVR() schema.GroupVersionResource { return m.GroupVersion().WithResource(m.Resource) }

// Mapper returns a RESTMapper of known kinds. With it no discovery request is sent to a cluster, and no cluster can claim another mapping.
func Mapper(known ...Mapping) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, m := range known {
		scope := meta.RESTScopeNamespace
		if m.Global {
			scope = meta.RESTScopeRoot
		}
		mapper.AddSpecific(m.GroupVersionKind, m.GVR(), m.GVR(), scope)
	}
	return mapper
}
