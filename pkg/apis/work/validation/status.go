// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

var valueTypes = []work.ValueType{work.Integer, work.String, work.Boolean, work.JsonRaw}

// ValidateManifestWorkStatusUpdate checks a change of a work's status.
func ValidateManifestWorkStatusUpdate(w, old *work.ManifestWork) field.ErrorList {
	path := field.NewPath("status")
	if bounds.Heavier(&w.Status, StatusLimit) {
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("has more than %d bytes in its entries: report less of the objects", StatusLimit))}
	}
	errs := apivalidation.ValidateObjectMetaUpdate(&w.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, validateConditions(w.Status.Conditions, path.Child("conditions"))...)
	manifests := path.Child("resourceStatus", "manifests")
	errs = append(errs, bounds.Count(manifests, len(w.Status.ResourceStatus.Manifests), 0, maxStatusManifests)...)
	for i := range w.Status.ResourceStatus.Manifests {
		m, at := &w.Status.ResourceStatus.Manifests[i], manifests.Index(i)
		errs = append(errs, validateResourceMeta(&m.ResourceMeta, at.Child("resourceMeta"))...)
		errs = append(errs, validateValues(m.StatusFeedbacks.Values, at.Child("statusFeedback", "values"))...)
		errs = append(errs, validateConditions(m.Conditions, at.Child("conditions"))...)
		if len(errs) > enoughFaults {
			break
		}
	}
	return errs
}

func validateConditions(conditions []metav1.Condition, path *field.Path) field.ErrorList {
	if errs := bounds.Count(path, len(conditions), 0, maxConditions); len(errs) > 0 {
		return errs
	}
	return metav1validation.ValidateConditions(conditions, path)
}

func validateResourceMeta(m *work.ManifestResourceMeta, path *field.Path) field.ErrorList {
	errs := apivalidation.ValidateNonnegativeField(int64(m.Ordinal), path.Child("ordinal"))
	for _, part := range []struct{ name, value string }{
		{"group", m.Group}, {"version", m.Version}, {"kind", m.Kind}, {"resource", m.Resource}, {"name", m.Name}, {"namespace", m.Namespace},
	} {
		errs = append(errs, bounds.Length(path.Child(part.name), part.value, 0, maxName)...)
	}
	return errs
}

func validateValues(values []work.FeedbackValue, path *field.Path) field.ErrorList {
	errs := bounds.Count(path, len(values), 0, maxValues)
	names := sets.New[string]()
	for i := range values {
		v, at := &values[i].Value, path.Index(i).Child("fieldValue")
		errs = append(errs, once(names, values[i].Name, path.Index(i).Child("name"))...)
		errs = append(errs, bounds.Filled(path.Index(i).Child("name"), values[i].Name, maxName)...)
		errs = append(errs, bounds.OneOf(at.Child("type"), v.Type, valueTypes)...)
		if v.String != nil {
			errs = append(errs, bounds.Length(at.Child("string"), *v.String, 0, maxValue)...)
		}
		if v.JsonRaw != nil {
			errs = append(errs, bounds.Length(at.Child("jsonRaw"), *v.JsonRaw, 0, maxRawValue)...)
		}
	}
	return errs
}
