// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/author"
	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
)

// ValidateDeploymentPolicy validates a new policy. Admission checks whether the user may use its services.
func ValidateDeploymentPolicy(p *edge.DeploymentPolicy, languages Languages) field.ErrorList {
	return append(originMeta(&p.ObjectMeta), validatePolicySpec(&p.Spec, languages, field.NewPath("spec"))...)
}

// ValidateDeploymentPolicyUpdate validates an update of a policy.
func ValidateDeploymentPolicyUpdate(p, old *edge.DeploymentPolicy, languages Languages) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&p.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, author.Validate(edge.AuthorAnnotation, &p.ObjectMeta, &old.ObjectMeta)...)
	if apiequality.Semantic.DeepEqual(p.Spec, old.Spec) {
		return errs
	}
	return append(errs, validatePolicySpec(&p.Spec, languages, field.NewPath("spec"))...)
}

// ValidateDeploymentPolicyStatusUpdate validates an update of the status of a policy.
func ValidateDeploymentPolicyStatusUpdate(p, old *edge.DeploymentPolicy) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&p.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateDeploymentStatus(&p.Status, field.NewPath("status"))...)
}

// ValidateDeploymentPattern validates a new pattern. Admission checks whether the user may use its services, and whether they can be deployed
// together.
func ValidateDeploymentPattern(p *edge.DeploymentPattern, languages Languages) field.ErrorList {
	return append(originMeta(&p.ObjectMeta), validatePatternSpec(&p.Spec, languages, field.NewPath("spec"))...)
}

// ValidateDeploymentPatternUpdate validates an update of a pattern.
func ValidateDeploymentPatternUpdate(p, old *edge.DeploymentPattern, languages Languages) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&p.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, author.Validate(edge.AuthorAnnotation, &p.ObjectMeta, &old.ObjectMeta)...)
	if apiequality.Semantic.DeepEqual(p.Spec, old.Spec) {
		return errs
	}
	return append(errs, validatePatternSpec(&p.Spec, languages, field.NewPath("spec"))...)
}

// ValidateDeploymentPatternStatusUpdate validates an update of the status of a pattern.
func ValidateDeploymentPatternStatusUpdate(p, old *edge.DeploymentPattern) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&p.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateDeploymentStatus(&p.Status, field.NewPath("status"))...)
}

func originMeta(m *metav1.ObjectMeta) field.ErrorList {
	path := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMeta(m, true, apivalidation.NameIsDNSSubdomain, path)
	errs = append(errs, author.Validate(edge.AuthorAnnotation, m, &metav1.ObjectMeta{})...)
	if len(m.Name) > edge.MaxOriginName {
		errs = append(errs, field.Invalid(path.Child("name"), m.Name, fmt.Sprintf(
			"must have at most %d characters: the names of placements begin with it", edge.MaxOriginName)))
	}
	return errs
}

func validatePolicySpec(spec *edge.DeploymentPolicySpec, languages Languages, path *field.Path) field.ErrorList {
	service := path.Child("service")
	errs := serviceURL(spec.Service.Name, service.Child("name"))
	errs = append(errs, namespaceName(spec.Service.Org, service.Child("org"))...)
	errs = append(errs, arch(spec.Service.Arch, anyReference, service.Child("arch"))...)
	errs = append(errs, namespaceName(spec.Service.ClusterNamespace, service.Child("clusterNamespace"))...)
	errs = append(errs, validateVersions(spec.Service.ServiceVersions, service.Child("serviceVersions"))...)
	errs = append(errs, validatePolicy(&spec.Policy, languages, path)...)
	return append(errs, validateInputs(spec.UserInput, languages, path.Child("userInput"))...)
}

func validatePatternSpec(spec *edge.DeploymentPatternSpec, languages Languages, path *field.Path) field.ErrorList {
	errs := namespaceName(spec.ClusterNamespace, path.Child("clusterNamespace"))
	services := path.Child("services")
	type key struct{ org, url, arch string }
	seen := map[key]bool{}
	for i := range spec.Services {
		s, at := &spec.Services[i], services.Index(i)
		errs = append(errs, serviceURL(s.ServiceUrl, at.Child("serviceUrl"))...)
		errs = append(errs, namespaceName(s.ServiceOrgid, at.Child("serviceOrgid"))...)
		errs = append(errs, arch(s.ServiceArch, anyReference, at.Child("serviceArch"))...)
		errs = append(errs, validateVersions(s.ServiceVersions, at.Child("serviceVersions"))...)
		k := key{s.ServiceOrgid, s.ServiceUrl, s.ServiceArch}
		if k.arch == "*" {
			k.arch = ""
		}
		if seen[k] {
			errs = append(errs, field.Duplicate(at, s.ServiceUrl))
		}
		seen[k] = true
	}
	return append(errs, validateInputs(spec.UserInput, languages, path.Child("userInput"))...)
}

func validateVersions(versions []edge.ServiceVersion, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names, priorities := sets.New[string](), sets.New[int32]()
	for i := range versions {
		v, at := &versions[i], path.Index(i)
		errs = append(errs, serviceVersion(v.Version, at.Child("version"))...)
		errs = append(errs, once(names, v.Version, at.Child("version"))...)
		if v.Priority != nil {
			errs = append(errs, once(priorities, v.Priority.PriorityValue, at.Child("priority", "priority_value"))...)
		}
	}
	return errs
}

func validateInputs(inputs []edge.ServiceInput, languages Languages, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range inputs {
		in, at := &inputs[i], path.Index(i)
		errs = append(errs, serviceURL(in.ServiceUrl, at.Child("serviceUrl"))...)
		errs = append(errs, namespaceName(in.ServiceOrgid, at.Child("serviceOrgid"))...)
		errs = append(errs, arch(in.ServiceArch, anyReference, at.Child("serviceArch"))...)
		if in.ServiceVersionRange != "" {
			errs = append(errs, languages.versionRange(in.ServiceVersionRange, at.Child("serviceVersionRange"))...)
		}
		errs = append(errs, validateInput(in.Inputs, at.Child("inputs"))...)
	}
	return errs
}

func validateInput(inputs []edge.Input, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range inputs {
		in, at := &inputs[i], path.Index(i)
		if in.Value.Type == edge.ValueNone {
			errs = append(errs, field.Required(at.Child("value"), "must be a string, a number, true or false, or a list of strings"))
		}
		errs = append(errs, bounds.Length(at.Child("value"), in.Value.String, 0, maxText)...)
		errs = append(errs, bounds.Count(at.Child("value"), len(in.Value.List), 0, maxEntries)...)
		errs = append(errs, bounds.Each(at.Child("value"), "", in.Value.List, nil, maxText, func(s *string) string { return *s })...)
	}
	return errs
}
