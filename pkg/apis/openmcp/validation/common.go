// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation validates objects of clusters.openmcp.cloud. Its errors say what would be valid. Most rules and their words
// are those of openMCP's CustomResourceDefinitions, on which clients rely; the others refuse early what no cluster would
// take later.
package validation

import (
	"regexp"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

const maxConditionType = 316

// conditionType is the pattern of the CustomResourceDefinitions, which allows longer names than a label has.
var conditionType = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)

func validateMeta(m *metav1.ObjectMeta, namespaced bool) field.ErrorList {
	return apivalidation.ValidateObjectMeta(m, namespaced, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

func validateMetaUpdate(m, old *metav1.ObjectMeta) field.ErrorList {
	return apivalidation.ValidateObjectMetaUpdate(m, old, field.NewPath("metadata"))
}

// validateStatus checks what the status of every kind begins with. The CustomResourceDefinitions require the phase and the
// generation, but take a 0 and a "" for them, which clients do send. Here, where both are always there, what is not given is
// just that.
func validateStatus(s *openmcp.Status, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.ObservedGeneration < 0 {
		errs = append(errs, field.Invalid(at.Child("observedGeneration"), s.ObservedGeneration, "must be a metadata.generation: 0 or more"))
	}
	return append(errs, validateConditions(s.Conditions, at.Child("conditions"))...)
}

func validateConditions(conditions []metav1.Condition, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, c := range conditions {
		if seen.Has(c.Type) {
			errs = append(errs, field.Duplicate(at.Index(i), c.Type))
		}
		seen.Insert(c.Type)
		if len(c.Type) <= maxConditionType && conditionType.MatchString(c.Type) {
			c.Type = "Valid"
		}
		errs = append(errs, metav1validation.ValidateCondition(c, at.Index(i))...)
	}
	return errs
}

func validateReference(r *openmcp.ObjectReference, kind string, at *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	if r.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), "must name the "+kind))
	}
	if r.Namespace == "" {
		errs = append(errs, field.Required(at.Child("namespace"), "must be the namespace of the "+kind))
	}
	return errs
}

// validateFixed keeps a reference that can be set once.
func validateFixed(r, old *openmcp.ObjectReference, name string, in *field.Path) field.ErrorList {
	switch {
	case old == nil:
		return nil
	case r == nil:
		return field.ErrorList{field.Invalid(in, field.OmitValueType{}, name+" may not be removed once set")}
	case *r != *old:
		return field.ErrorList{field.Invalid(in.Child(name), r.Namespace+"/"+r.Name, name+" is immutable")}
	}
	return nil
}

// validateRoleName checks what becomes the name of a role.
func validateRoleName(name string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, message := range content.IsPathSegmentName(name) {
		errs = append(errs, field.Invalid(at, name, message))
	}
	return errs
}

func validateNamespace(name string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, message := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(at, name, message))
	}
	return errs
}

// validateLabelValue checks a name that becomes the value of a label.
func validateLabelValue(value, what string, at *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(at, "must name the "+what)}
	}
	var errs field.ErrorList
	for _, message := range validation.IsValidLabelValue(value) {
		errs = append(errs, field.Invalid(at, value, message))
	}
	return errs
}
