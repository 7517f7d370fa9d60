// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

var (
	// subdomain is the pattern for names of service accounts in upstream's schema.
	subdomain = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`)

	propagationPolicies = []work.DeletePropagationPolicyType{
		work.DeletePropagationPolicyTypeForeground, work.DeletePropagationPolicyTypeOrphan, work.DeletePropagationPolicyTypeSelectivelyOrphan,
	}
	executorTypes = []work.ManifestWorkExecutorSubjectType{work.ExecutorSubjectTypeServiceAccount}
)

// ValidateManifestWork checks a new work, besides BadManifestWork.
func ValidateManifestWork(w *work.ManifestWork) field.ErrorList {
	path := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMeta(&w.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, path)
	if len(w.Name) > work.MaxNameLength {
		errs = append(errs, field.Invalid(path.Child("name"), w.Name, fmt.Sprintf(
			"must have at most %d characters: the object that the agent creates for it in the cluster has 65 more", work.MaxNameLength)))
	}
	return append(errs, validateWorkSpec(&w.Spec, &work.ManifestWorkSpec{}, field.NewPath("spec"))...)
}

// ValidateManifestWorkUpdate checks a change of a work, besides BadManifestWork.
func ValidateManifestWorkUpdate(w, old *work.ManifestWork) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&w.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateWorkSpec(&w.Spec, &old.Spec, field.NewPath("spec"))...)
}

// BadManifestWork returns the faults of a work that upstream's webhook rejects.
func BadManifestWork(w, old *work.ManifestWork) field.ErrorList {
	return badWorkSpec(&w.Spec, &old.Spec, field.NewPath("spec"))
}

func badWorkSpec(spec, old *work.ManifestWorkSpec, path *field.Path) field.ErrorList {
	errs := BadManifests(spec.Workload.Manifests, old.Workload.Manifests, path.Child("workload", "manifests"))
	if e := spec.Executor; e != nil && e.Subject.Type == work.ExecutorSubjectTypeServiceAccount && e.Subject.ServiceAccount == nil {
		errs = append(errs, field.Required(path.Child("executor", "subject", "serviceAccount"), "executor service account can not be nil"))
	}
	return errs
}

func validateWorkSpec(spec, old *work.ManifestWorkSpec, path *field.Path) field.ErrorList {
	errs := validateManifests(spec.Workload.Manifests, old.Workload.Manifests, path.Child("workload", "manifests"))
	errs = append(errs, validateDeleteOption(spec.DeleteOption, path.Child("deleteOption"))...)
	errs = append(errs, validateManifestConfigs(spec.ManifestConfigs, path.Child("manifestConfigs"))...)
	return append(errs, validateExecutor(spec.Executor, path.Child("executor", "subject"))...)
}

func validateDeleteOption(o *work.DeleteOption, path *field.Path) field.ErrorList {
	if o == nil {
		return nil
	}
	return bounds.OneOf(path.Child("propagationPolicy"), o.PropagationPolicy, propagationPolicies)
}

func validateExecutor(e *work.ManifestWorkExecutor, path *field.Path) field.ErrorList {
	if e == nil {
		return nil
	}
	errs := bounds.OneOf(path.Child("type"), e.Subject.Type, executorTypes)
	account := e.Subject.ServiceAccount
	if account == nil {
		return errs
	}
	for _, part := range []struct{ name, value string }{{"namespace", account.Namespace}, {"name", account.Name}} {
		at := path.Child("serviceAccount", part.name)
		if !subdomain.MatchString(part.value) {
			errs = append(errs, field.Invalid(at, part.value, "must be lower-case letters, digits, '-' and '.', with a letter or digit at both ends"))
		}
	}
	return errs
}
