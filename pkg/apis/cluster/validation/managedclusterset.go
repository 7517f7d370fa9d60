// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// ValidateManagedClusterSet checks a new set.
func ValidateManagedClusterSet(s *cluster.ManagedClusterSet) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&s.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateManagedClusterSetSpec(s, &cluster.ManagedClusterSetSpec{})...)
}

// ValidateManagedClusterSetUpdate checks a change of a set.
func ValidateManagedClusterSetUpdate(s, old *cluster.ManagedClusterSet) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&s.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateManagedClusterSetSpec(s, &old.Spec)...)
}

// ValidateManagedClusterSetStatusUpdate checks a change of a set's status.
func ValidateManagedClusterSetStatusUpdate(s, old *cluster.ManagedClusterSet) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&s.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateConditions(s.Status.Conditions, field.NewPath("status", "conditions"))...)
}

func validateManagedClusterSetSpec(s *cluster.ManagedClusterSet, old *cluster.ManagedClusterSetSpec) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateClusterSelector(s, &old.ClusterSelector, spec.Child("clusterSelector"))
	for i, n := range s.Spec.ManagedNamespaces {
		at := spec.Child("managedNamespaces").Index(i).Child("name")
		for _, message := range validation.IsDNS1123Label(n.Name) {
			errs = append(errs, field.Invalid(at, n.Name, message))
		}
	}
	return errs
}

func validateClusterSelector(set *cluster.ManagedClusterSet, old *cluster.ManagedClusterSelector, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	s := &set.Spec.ClusterSelector
	if s.SelectorType != cluster.ExclusiveLabel && s.ExclusiveLabel != nil {
		errs = append(errs, field.Forbidden(path.Child("exclusiveLabel"), "is only for selectorType ExclusiveLabel"))
	}
	if s.SelectorType != cluster.LabelSelector && s.LabelSelector != nil {
		errs = append(errs, field.Forbidden(path.Child("labelSelector"), "is only for selectorType LabelSelector"))
	}
	switch s.SelectorType {
	case cluster.ExclusiveClusterSetLabel:
		for _, message := range validation.IsValidLabelValue(set.Name) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), set.Name,
				"must be a valid value of the label "+cluster.ClusterSetLabel+", which selects the set's clusters: "+message))
		}
	case cluster.ExclusiveLabel:
		errs = append(errs, validateExclusiveLabel(s.ExclusiveLabel, path.Child("exclusiveLabel"))...)
	case cluster.LabelSelector:
		if s.LabelSelector != nil {
			errs = append(errs, boundSelector(s.LabelSelector, old.LabelSelector, path.Child("labelSelector"))...)
		}
		errs = append(errs, metav1validation.ValidateLabelSelector(s.LabelSelector,
			metav1validation.LabelSelectorValidationOptions{}, path.Child("labelSelector"))...)
	default:
		errs = append(errs, field.NotSupported(path.Child("selectorType"), s.SelectorType, []string{
			"LegacyClusterSetLabel", string(cluster.ExclusiveClusterSetLabel), string(cluster.ExclusiveLabel), string(cluster.LabelSelector)}))
	}
	return errs
}

func validateExclusiveLabel(l *cluster.ManagedClusterLabel, path *field.Path) field.ErrorList {
	if l == nil {
		return field.ErrorList{field.Required(path, "selectorType ExclusiveLabel needs the label that selects the set's clusters")}
	}
	// The types of v1beta2 have no such field, and declare no bounds for it.
	var errs field.ErrorList
	switch {
	case l.Key == "":
		errs = append(errs, field.Required(path.Child("key"), "an exclusive label needs a key"))
	case !cluster.IsReservedLabel(l.Key):
		errs = append(errs, field.Invalid(path.Child("key"), l.Key, "must start with "+
			cluster.ReservedLabelPrefixCluster+" or "+cluster.ReservedLabelPrefixInfo+": only such labels are protected"))
	default:
		errs = append(errs, metav1validation.ValidateLabelName(l.Key, path.Child("key"))...)
	}
	if l.Value == "" {
		errs = append(errs, field.Required(path.Child("value"), "an exclusive label needs a value"))
	}
	for _, message := range validation.IsValidLabelValue(l.Value) {
		errs = append(errs, field.Invalid(path.Child("value"), l.Value, message))
	}
	return errs
}
