// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation validates what the markers of the types of cluster.open-cluster-management.io do not declare. It runs after the validation of the
// declared bounds, and relies on it. Its errors say what would be valid.
package validation

import (
	"net/url"
	"regexp"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

var (
	taintKey     = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)
	taintEffects = []cluster.TaintEffect{cluster.TaintEffectNoSelect, cluster.TaintEffectPreferNoSelect, cluster.TaintEffectNoSelectIfNew}
)

// ValidateManagedCluster checks a new cluster.
func ValidateManagedCluster(c *cluster.ManagedCluster) field.ErrorList {
	// A cluster's name is the name of its namespace on the hub, and has no dot in the name of a member.
	errs := apivalidation.ValidateObjectMeta(&c.ObjectMeta, false, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	if slices.Contains(cluster.ReservedNames, c.Name) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), c.Name,
			"is reserved for roles, groups and namespaces of the hub: choose another name, such as "+c.Name+"-1"))
	}
	return append(errs, validateManagedClusterSpec(&c.Spec, &cluster.ManagedClusterSpec{}, field.NewPath("spec"))...)
}

// ValidateManagedClusterUpdate checks a change of a cluster.
func ValidateManagedClusterUpdate(c, old *cluster.ManagedCluster) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&c.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, validateManagedClusterSpec(&c.Spec, &old.Spec, field.NewPath("spec"))...)
	return append(errs, validateTaintTimes(c.Spec.Taints, field.NewPath("spec", "taints"))...)
}

func validateManagedClusterSpec(spec, old *cluster.ManagedClusterSpec, path *field.Path) field.ErrorList {
	errs := boundCABundles(spec.ManagedClusterClientConfigs, old.ManagedClusterClientConfigs, path.Child("managedClusterClientConfigs"))
	for i, config := range spec.ManagedClusterClientConfigs {
		at := path.Child("managedClusterClientConfigs").Index(i).Child("url")
		if u, err := url.Parse(config.URL); err != nil || u.Scheme != "https" || u.Host == "" {
			errs = append(errs, field.Invalid(at, config.URL, "must be an https URL, such as https://api.example.com:6443"))
		}
	}
	for i := range spec.Taints {
		errs = append(errs, validateTaint(&spec.Taints[i], path.Child("taints").Index(i))...)
	}
	return append(errs, validateTaintsOnce(spec.Taints, old.Taints, path.Child("taints"))...)
}

func validateTaint(t *cluster.Taint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !taintKey.MatchString(t.Key) {
		errs = append(errs, field.Invalid(path.Child("key"), t.Key, "must be a qualified name, with an optional DNS subdomain and '/' before it"))
	}
	switch t.Effect {
	case "":
		errs = append(errs, field.Required(path.Child("effect"), "must be NoSelect, PreferNoSelect or NoSelectIfNew"))
	case cluster.TaintEffectNoSelect, cluster.TaintEffectPreferNoSelect, cluster.TaintEffectNoSelectIfNew:
	default:
		errs = append(errs, field.NotSupported(path.Child("effect"), t.Effect, taintEffects))
	}
	return errs
}

// ValidateManagedClusterStatusUpdate checks a change of a cluster's status.
func ValidateManagedClusterStatusUpdate(c, old *cluster.ManagedCluster) field.ErrorList {
	path := field.NewPath("status")
	errs := apivalidation.ValidateObjectMetaUpdate(&c.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, boundResourceNames(c.Status.Capacity, old.Status.Capacity, path.Child("capacity"))...)
	errs = append(errs, boundResourceNames(c.Status.Allocatable, old.Status.Allocatable, path.Child("allocatable"))...)
	errs = append(errs, validateConditions(c.Status.Conditions, path.Child("conditions"))...)
	for i, n := range c.Status.ManagedNamespaces {
		at := path.Child("managedNamespaces").Index(i)
		for _, message := range validation.IsDNS1123Label(n.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), n.Name, message))
		}
		errs = append(errs, validateConditions(n.Conditions, at.Child("conditions"))...)
	}
	return errs
}

func validateConditions(conditions []metav1.Condition, path *field.Path) field.ErrorList {
	return metav1validation.ValidateConditions(conditions, path)
}
