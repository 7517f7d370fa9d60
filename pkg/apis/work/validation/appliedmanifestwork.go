// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

// ValidateAppliedManifestWork checks a new applied work, which has no status yet.
func ValidateAppliedManifestWork(w *work.AppliedManifestWork) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&w.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateAppliedSpec(&w.Spec, field.NewPath("spec"))...)
}

// ValidateAppliedManifestWorkUpdate checks a change of an applied work.
func ValidateAppliedManifestWorkUpdate(w, old *work.AppliedManifestWork) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&w.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateAppliedSpec(&w.Spec, field.NewPath("spec"))...)
}

func validateAppliedSpec(spec *work.AppliedManifestWorkSpec, path *field.Path) field.ErrorList {
	errs := bounds.Filled(path.Child("hubHash"), spec.HubHash, maxName)
	errs = append(errs, bounds.Length(path.Child("agentID"), spec.AgentID, 0, maxName)...)
	return append(errs, bounds.Filled(path.Child("manifestWorkName"), spec.ManifestWorkName, maxName)...)
}

// ValidateAppliedManifestWorkStatusUpdate checks a change of the objects that were made for a work.
func ValidateAppliedManifestWorkStatusUpdate(w, old *work.AppliedManifestWork) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&w.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	resources := field.NewPath("status", "appliedResources")
	errs = append(errs, bounds.Count(resources, len(w.Status.AppliedResources), 0, maxAppliedResources)...)
	for i := range w.Status.AppliedResources {
		r, at := &w.Status.AppliedResources[i], resources.Index(i)
		errs = append(errs, validateIdentifier(&r.ResourceIdentifier, at)...)
		errs = append(errs, bounds.Filled(at.Child("version"), r.Version, maxName)...)
		errs = append(errs, bounds.Length(at.Child("uid"), r.UID, 0, maxName)...)
		if len(errs) > enoughFaults {
			break
		}
	}
	return errs
}
