// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// Bounds that markers of the types cannot express: of bytes, of keys of maps, and of types of other modules. Like the declared bounds, they are far
// above what any of upstream's programs writes. docs/operating.md has the table.
const (
	maxCABundle       = 64 << 10
	maxResourceName   = 317
	maxRequirements   = 128
	maxValues         = 1024
	maxAllExpressions = 64
)

func boundCABundles(configs, old []cluster.ClientConfig, path *field.Path) field.ErrorList {
	return bounds.Each(path, "caBundle", configs, old, maxCABundle, func(c *cluster.ClientConfig) string { return string(c.CABundle) })
}

func boundResourceNames(list, old cluster.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name := range list {
		if _, stored := old[name]; !stored {
			errs = append(errs, bounds.Length(path.Key("name"), string(name), 0, maxResourceName)...)
		}
	}
	return errs
}

func boundSelector(now, old *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if old == nil {
		old = &metav1.LabelSelector{}
	}
	errs := bounds.Count(path.Child("matchLabels"), len(now.MatchLabels), len(old.MatchLabels), maxRequirements)
	expressions := path.Child("matchExpressions")
	errs = append(errs, bounds.Count(expressions, len(now.MatchExpressions), len(old.MatchExpressions), maxRequirements)...)
	return append(errs, boundValues(now.MatchExpressions, old.MatchExpressions, expressions)...)
}

func boundValues(now, old []metav1.LabelSelectorRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	stored := 0
	for i := range old {
		stored = max(stored, len(old[i].Values))
	}
	for i := range now {
		errs = append(errs, bounds.Count(path.Index(i).Child("values"), len(now[i].Values), stored, maxValues)...)
	}
	return errs
}
