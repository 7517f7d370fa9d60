// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
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
	errs = append(errs, metav1validation.ValidateConditions(w.Status.Conditions, path.Child("conditions"))...)
	manifests := path.Child("resourceStatus", "manifests")
	for i := range w.Status.ResourceStatus.Manifests {
		m, at := &w.Status.ResourceStatus.Manifests[i], manifests.Index(i)
		for j := range m.StatusFeedbacks.Values {
			errs = append(errs, bounds.OneOf(at.Child("statusFeedback", "values").Index(j).Child("fieldValue", "type"),
				m.StatusFeedbacks.Values[j].Value.Type, valueTypes)...)
		}
		errs = append(errs, metav1validation.ValidateConditions(m.Conditions, at.Child("conditions"))...)
		if len(errs) > enoughFaults {
			break
		}
	}
	return errs
}
