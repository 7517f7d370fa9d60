// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
)

var (
	originKinds     = []string{edge.KindDeploymentPolicy, edge.KindDeploymentPattern}
	placementStates = []edge.PlacementState{
		edge.PlacementPending, edge.PlacementDelivering, edge.PlacementRunning, edge.PlacementFailed, edge.PlacementRemoving,
	}
	attemptStates = []edge.AttemptState{edge.AttemptRetrying, edge.AttemptRemoving, edge.AttemptGivenUp, edge.AttemptVerified}
)

func validateDeploymentStatus(s *edge.DeploymentStatus, path *field.Path) field.ErrorList {
	errs := apivalidation.ValidateNonnegativeField(s.ObservedGeneration, path.Child("observedGeneration"))
	return append(errs, metav1validation.ValidateConditions(s.Conditions, path.Child("conditions"))...)
}

// ValidateEdgePlacement validates a new placement.
func ValidateEdgePlacement(p *edge.EdgePlacement) field.ErrorList {
	path := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMeta(&p.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, path)
	if want := edge.PlacementName(p.Spec.Origin, p.Spec.Node); p.Name != want {
		errs = append(errs, field.Invalid(path.Child("name"), p.Name, "must be "+want+", which is derived from origin and node"))
	}
	return append(errs, validatePlacementSpec(&p.Spec, field.NewPath("spec"))...)
}

// ValidateEdgePlacementUpdate validates an update of a placement. Only its services can change.
func ValidateEdgePlacementUpdate(p, old *edge.EdgePlacement) field.ErrorList {
	path := field.NewPath("spec")
	errs := apivalidation.ValidateObjectMetaUpdate(&p.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, apivalidation.ValidateImmutableField(p.Spec.Node, old.Spec.Node, path.Child("node"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(p.Spec.Origin, old.Spec.Origin, path.Child("origin"))...)
	if apiequality.Semantic.DeepEqual(p.Spec, old.Spec) {
		return errs
	}
	return append(errs, validatePlacementSpec(&p.Spec, path)...)
}

// ValidateEdgePlacementStatusUpdate validates an update of the status of a placement.
func ValidateEdgePlacementStatusUpdate(p, old *edge.EdgePlacement) field.ErrorList {
	path, s := field.NewPath("status"), &p.Status
	errs := apivalidation.ValidateObjectMetaUpdate(&p.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, apivalidation.ValidateNonnegativeField(s.ObservedGeneration, path.Child("observedGeneration"))...)
	if s.State != "" {
		errs = append(errs, bounds.OneOf(path.Child("state"), s.State, placementStates)...)
	}
	return append(errs, validateAttempts(s.Attempts, path.Child("attempts"))...)
}

func validateAttempts(attempts []edge.VersionAttempt, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range attempts {
		a, at := &attempts[i], path.Index(i)
		errs = append(errs, namespaceName(a.Org, at.Child("org"))...)
		errs = append(errs, serviceURL(a.Name, at.Child("name"))...)
		errs = append(errs, serviceVersion(a.Version, at.Child("version"))...)
		if a.State != "" {
			errs = append(errs, bounds.OneOf(at.Child("state"), a.State, attemptStates)...)
		}
	}
	return errs
}

func validatePlacementSpec(spec *edge.EdgePlacementSpec, path *field.Path) field.ErrorList {
	errs := nodeName(spec.Node, path.Child("node"))
	errs = append(errs, bounds.OneOf(path.Child("origin", "kind"), spec.Origin.Kind, originKinds)...)
	services := path.Child("services")
	for i := range spec.Services {
		s, at := &spec.Services[i], services.Index(i)
		errs = append(errs, serviceURL(s.Name, at.Child("name"))...)
		errs = append(errs, namespaceName(s.Org, at.Child("org"))...)
		errs = append(errs, serviceVersion(s.Version, at.Child("version"))...)
		errs = append(errs, arch(s.Arch, anyService, at.Child("arch"))...)
		errs = append(errs, namespaceName(s.TargetNamespace, at.Child("targetNamespace"))...)
	}
	return errs
}

func nodeName(name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, fault := range apivalidation.NameIsDNSLabel(name, false) {
		errs = append(errs, field.Invalid(path, name, fault))
	}
	return errs
}
