// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rulematch warns of rules of a work that match none of its manifests.
package rulematch

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/work/manifestconfig"
)

const (
	// maxWarnings is the greatest number of warnings of a write.
	maxWarnings = 8
	// maxCompared bounds the processor time of a write: it is the greatest length of all patterns that are compared with objects, each as often as
	// it is compared. Rules beyond it get no warning.
	maxCompared = 1 << 20
)

// objectReference is the object of a manifest.
type objectReference struct {
	schema.GroupVersionKind
	namespace, name string
}

// Warnings returns a warning for each rule that matches no manifest of the work: its options for updates, status feedback or deletion have no effect.
// The hub does not know the resources of the managed cluster. In a group of Kubernetes, a resource is compared with the regular plural of the kind;
// in another group, it is only considered wrong if it looks like the kind itself.
func Warnings(spec *work.ManifestWorkSpec, path *field.Path) (warnings []string) {
	var orphaning []work.OrphaningRule
	if spec.DeleteOption != nil && spec.DeleteOption.SelectivelyOrphan != nil {
		orphaning = spec.DeleteOption.SelectivelyOrphan.OrphaningRules
	}
	if len(orphaning) == 0 && len(spec.ManifestConfigs) == 0 {
		return nil
	}
	objects, complete := objectsOf(spec.Workload.Manifests)
	if !complete {
		return nil // a manifest that cannot be read may be what a rule is about
	}
	compared := 0
	check := func(rule work.ResourceIdentifier, at *field.Path, exact bool) {
		compared += len(objects) * (1 + len(rule.Namespace) + len(rule.Name))
		if len(warnings) == maxWarnings || compared > maxCompared {
			return
		}
		if why := unmatched(rule, objects, exact); why != "" {
			warnings = append(warnings, fmt.Sprintf("%s: matches no manifest of the work, so the rule has no effect: %s", at, why))
		}
	}
	for i := range orphaning {
		check(work.ResourceIdentifier(orphaning[i]), path.Child("deleteOption", "selectivelyOrphans", "orphaningRules").Index(i), true)
	}
	for i := range spec.ManifestConfigs {
		check(spec.ManifestConfigs[i].ResourceIdentifier, path.Child("manifestConfigs").Index(i).Child("resourceIdentifier"), false)
	}
	return warnings
}

// objectsOf returns the objects of manifests, and whether all could be read.
func objectsOf(manifests []work.Manifest) (objects []objectReference, complete bool) {
	for i := range manifests {
		var m metav1.PartialObjectMetadata
		if err := json.Unmarshal(manifests[i].Raw, &m); err != nil {
			return nil, false
		}
		objects = append(objects, objectReference{m.GroupVersionKind(), m.Namespace, m.Name})
	}
	return objects, true
}

// unmatched returns why a rule matches none of the objects, or an empty string if it matches one, or may.
func unmatched(rule work.ResourceIdentifier, objects []objectReference, exact bool) string {
	// The matching objects of the rule's group, with a kind that does not belong to its resource.
	var named []objectReference
	for _, o := range objects {
		if !names(rule, o, exact) {
			continue
		}
		plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind)
		switch {
		case rule.Resource == plural.Resource:
			return ""
		case !ofKubernetes(rule.Group) && !looksLikeKind(rule.Resource, o.Kind):
			return "" // the plural may be irregular
		}
		named = append(named, o)
	}
	if len(named) == 0 {
		return fmt.Sprintf("no object of the group %q has the namespace %q and the name %q", rule.Group, rule.Namespace, rule.Name)
	}
	plural, _ := meta.UnsafeGuessKindToResource(named[0].GroupVersionKind)
	return fmt.Sprintf("the resource is %q, expected the plural in lower case, %q for the %s %q", rule.Resource, plural.Resource, named[0].Kind, named[0].name)
}

// names reports whether a rule has the group, the namespace and the name of an object.
func names(rule work.ResourceIdentifier, o objectReference, exact bool) bool {
	if exact {
		return rule.Group == o.Group && rule.Namespace == o.namespace && rule.Name == o.name
	}
	return manifestconfig.Fits(&workv1.ResourceIdentifier{Group: rule.Group, Namespace: rule.Namespace, Name: rule.Name},
		&workv1.ManifestResourceMeta{Group: o.Group, Namespace: o.namespace, Name: o.name})
}

// ofKubernetes reports whether the kinds of a group are Kubernetes' own, with regular plurals.
func ofKubernetes(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// looksLikeKind reports whether a resource is a kind, or its singular.
func looksLikeKind(resource, kind string) bool {
	return resource == kind || resource == strings.ToLower(kind) && !strings.HasSuffix(resource, "s")
}
