// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bytes"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/author"
	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
)

var variableTypes = []edge.PropertyType{
	edge.PropertyString, edge.PropertyInt, edge.PropertyFloat, edge.PropertyBoolean, edge.PropertyList,
}

// ValidateEdgeService validates a new service. Admission checks the content of its archive.
func ValidateEdgeService(s *edge.EdgeService, languages Languages) field.ErrorList {
	metadata := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMeta(&s.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, metadata)
	errs = append(errs, author.Validate(edge.AuthorAnnotation, &s.ObjectMeta, &metav1.ObjectMeta{})...)
	wrong := validateServiceSpec(&s.Spec, languages, field.NewPath("spec"))
	if want := edge.ServiceName(s.Spec.URL, s.Spec.Version, s.Spec.Arch); len(wrong) == 0 && s.Name != want {
		errs = append(errs, field.Invalid(metadata.Child("name"), s.Name, fmt.Sprintf(
			"must be %s, which is derived from url, version and arch, so that each service exists once", want)))
	}
	return append(errs, wrong...)
}

// ValidateEdgeServiceUpdate validates an update of a service.
func ValidateEdgeServiceUpdate(s, old *edge.EdgeService, languages Languages) field.ErrorList {
	path := field.NewPath("spec")
	errs := apivalidation.ValidateObjectMetaUpdate(&s.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, author.Validate(edge.AuthorAnnotation, &s.ObjectMeta, &old.ObjectMeta)...)
	errs = append(errs, apivalidation.ValidateImmutableField(s.Spec.URL, old.Spec.URL, path.Child("url"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(s.Spec.Version, old.Spec.Version, path.Child("version"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(s.Spec.Arch, old.Spec.Arch, path.Child("arch"))...)
	if apiequality.Semantic.DeepEqual(s.Spec, old.Spec) {
		return errs
	}
	return append(errs, validateServiceSpec(&s.Spec, languages, path)...)
}

func validateServiceSpec(spec *edge.EdgeServiceSpec, languages Languages, path *field.Path) field.ErrorList {
	errs := serviceURL(spec.URL, path.Child("url"))
	errs = append(errs, serviceVersion(spec.Version, path.Child("version"))...)
	errs = append(errs, arch(spec.Arch, anyService, path.Child("arch"))...)
	errs = append(errs, validateVariables(spec.UserInput, path.Child("userInput"))...)
	if spec.Deployment == nil && spec.ClusterDeployment == nil {
		errs = append(errs, field.Required(path.Child("clusterDeployment"), "must define what a cluster runs; a service for devices has deployment instead"))
	}
	if d := spec.Deployment; d != nil {
		at := path.Child("deployment")
		switch {
		case len(d.Raw) > maxDeployment:
			errs = append(errs, field.TooLong(at, "" /* it is long */, maxDeployment))
		case !bytes.HasPrefix(bytes.TrimSpace(d.Raw), []byte("{")):
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, "must be an object"))
		}
	}
	if d := spec.ClusterDeployment; d != nil {
		at := path.Child("clusterDeployment", "operatorYamlArchive")
		switch {
		case len(d.OperatorYamlArchive) == 0:
			errs = append(errs, field.Required(at, "must be a tar.gz of YAML files, in base64"))
		case len(d.OperatorYamlArchive) > MaxArchive:
			errs = append(errs, field.TooLong(at, "" /* it is long */, MaxArchive))
		}
	}
	return append(errs, validatePolicy(spec.Policy, languages, path.Child("policy"))...)
}

func validateVariables(variables []edge.Variable, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, v := range variables {
		if v.Type != "" {
			errs = append(errs, bounds.OneOf(path.Index(i).Child("type"), v.Type, variableTypes)...)
		}
	}
	return errs
}
