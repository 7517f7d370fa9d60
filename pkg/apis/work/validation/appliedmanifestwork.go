// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

// ValidateAppliedManifestWork validates a new applied work.
func ValidateAppliedManifestWork(w *work.AppliedManifestWork) field.ErrorList {
	return apivalidation.ValidateObjectMeta(&w.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// ValidateAppliedManifestWorkUpdate validates an update of an applied work, or of its status.
func ValidateAppliedManifestWorkUpdate(w, old *work.AppliedManifestWork) field.ErrorList {
	return apivalidation.ValidateObjectMetaUpdate(&w.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
}
