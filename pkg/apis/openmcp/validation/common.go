// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation validates objects of clusters.openmcp.cloud. Its errors say what would be valid. Most rules and their words
// are those of openMCP's CustomResourceDefinitions, on which clients rely; the others refuse early what no cluster would
// take later. It relies on the bounds that the types declare, which bounds.Declared checks first.
package validation

import (
	"regexp"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
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

func validateConditions(conditions []metav1.Condition, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, c := range conditions {
		if len(c.Type) <= maxConditionType && conditionType.MatchString(c.Type) {
			c.Type = "Valid"
		}
		errs = append(errs, metav1validation.ValidateCondition(c, at.Index(i))...)
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
func validateLabelValue(value string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, message := range validation.IsValidLabelValue(value) {
		errs = append(errs, field.Invalid(at, value, message))
	}
	return errs
}
