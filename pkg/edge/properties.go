// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"fmt"
	"slices"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/constraint"
)

// overlay returns all properties of both lists; of those with the same name, the first in the later list, otherwise the first in the earlier.
func overlay(earlier, later []constraint.Property) []constraint.Property {
	all := slices.Concat(later, earlier)
	seen := make(map[string]bool, len(all))
	return slices.DeleteFunc(all, func(p constraint.Property) bool {
		twice := seen[p.Name]
		seen[p.Name] = true
		return twice
	})
}

// stamp is the only place where built-in properties are set. It is called last, after all overlays: their values for a built-in property are dropped,
// even if the fact is not known.
func stamp(written, builtIn []constraint.Property) (*constraint.Properties, error) {
	kept := slices.DeleteFunc(slices.Clone(written), func(p constraint.Property) bool { return api.ReadOnly(p.Name) })
	properties, err := constraint.NewProperties(slices.Concat(builtIn, kept))
	if err != nil {
		return nil, fmt.Errorf("properties: %w", err)
	}
	return properties, nil
}

// properties returns the built-in properties of a node. An unknown fact is no property: then no comparison with it is true, not even '!='.
func (f *Facts) properties(t Type) []constraint.Property {
	var list []constraint.Property
	text := func(name, value string) {
		if value != "" {
			list = append(list, constraint.Property{Name: name, Value: value, Type: constraint.String})
		}
	}
	number := func(name string, value int64) {
		if value > 0 {
			list = append(list, constraint.Property{Name: name, Value: value, Type: constraint.Int})
		}
	}
	text(api.PropertyArch, f.Arch)
	number(api.PropertyCPU, f.CPU)
	number(api.PropertyMemory, f.Memory)
	if t != Cluster {
		return list
	}
	if f.KubernetesVersion != "" {
		// It has no type, as in Open Horizon: with a suffix it is not a valid version, and constraints compare it as a text.
		list = append(list, constraint.Property{Name: api.PropertyKubernetesVersion, Value: f.KubernetesVersion})
	}
	text(api.PropertyKubernetesNamespace, f.Namespace)
	if f.Scope != ScopeNotKnown {
		list = append(list, constraint.Property{Name: api.PropertyKubernetesNamespaceScoped, Value: f.Scope == NamespaceScoped, Type: constraint.Boolean})
	}
	return list
}

// properties returns the built-in properties of a service.
func (s *Service) properties() []constraint.Property {
	list := []constraint.Property{
		{Name: "openhorizon.service.url", Value: s.Name}, {Name: "openhorizon.service.name", Value: s.Name},
		{Name: "openhorizon.service.org", Value: s.Org}, {Name: "openhorizon.service.arch", Value: s.Arch},
	}
	version := constraint.Property{Name: "openhorizon.service.version", Value: s.Version, Type: constraint.Version}
	if _, err := constraint.NewProperties([]constraint.Property{version}); err != nil {
		version.Type = constraint.Untyped
	}
	return append(list, version)
}
