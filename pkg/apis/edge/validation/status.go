// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
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
	if tooMany := bounds.Count(path.Child("conditions"), len(s.Conditions), 0, maxConditions); len(tooMany) > 0 {
		errs = append(errs, tooMany...)
	} else {
		errs = append(errs, metav1validation.ValidateConditions(s.Conditions, path.Child("conditions"))...)
	}
	nodes := path.Child("nodes")
	for _, count := range []struct {
		name  string
		value int32
	}{
		{"reached", s.Nodes.Reached}, {"selected", s.Nodes.Selected}, {"placed", s.Nodes.Placed}, {"running", s.Nodes.Running}, {"failed", s.Nodes.Failed},
	} {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(count.value), nodes.Child(count.name))...)
	}
	excluded := path.Child("excluded")
	if tooMany := bounds.Count(excluded, len(s.Excluded), 0, maxExcluded); len(tooMany) > 0 {
		return append(errs, tooMany...)
	}
	reasons := sets.New[string]()
	for i := range s.Excluded {
		at := excluded.Index(i)
		errs = append(errs, bounds.Filled(at.Child("reason"), s.Excluded[i].Reason, maxLabel)...)
		errs = append(errs, once(reasons, s.Excluded[i].Reason, at.Child("reason"))...)
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(s.Excluded[i].Nodes), at.Child("nodes"))...)
	}
	return errs
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
	errs = append(errs, bounds.Length(path.Child("reason"), s.Reason, 0, maxLabel)...)
	errs = append(errs, bounds.Length(path.Child("message"), s.Message, 0, maxMessage)...)
	errs = append(errs, bounds.Length(path.Child("work"), s.Work, 0, maxWork)...)
	errs = append(errs, bounds.Length(path.Child("attemptsOf"), s.AttemptsOf, 0, maxLabel)...)
	return append(errs, validateAttempts(s.Attempts, path.Child("attempts"))...)
}

func validateAttempts(attempts []edge.VersionAttempt, path *field.Path) field.ErrorList {
	if tooMany := bounds.Count(path, len(attempts), 0, edge.MaxAttempts); len(tooMany) > 0 {
		return tooMany
	}
	var errs field.ErrorList
	tried := sets.New[string]()
	for i := range attempts {
		a, at := &attempts[i], path.Index(i)
		errs = append(errs, filledNamespace(a.Org, at.Child("org"))...)
		errs = append(errs, serviceURL(a.Name, at.Child("name"))...)
		errs = append(errs, serviceVersion(a.Version, at.Child("version"))...)
		if key := strings.Join([]string{a.Org, a.Name, a.Version}, " "); tried.Has(key) {
			errs = append(errs, field.Duplicate(at.Child("version"), a.Version))
		} else {
			tried.Insert(key)
		}
		if a.State != "" {
			errs = append(errs, bounds.OneOf(at.Child("state"), a.State, attemptStates)...)
		}
		errs = append(errs, inRange(int64(a.Failures), 0, maxRetries+1, at.Child("failures"))...)
		errs = append(errs, bounds.Length(at.Child("work"), string(a.Work), 0, maxLabel)...)
		errs = append(errs, bounds.Length(at.Child("message"), a.Message, 0, maxMessage)...)
	}
	return errs
}

func validatePlacementSpec(spec *edge.EdgePlacementSpec, path *field.Path) field.ErrorList {
	errs := nodeName(spec.Node, path.Child("node"))
	errs = append(errs, bounds.OneOf(path.Child("origin", "kind"), spec.Origin.Kind, originKinds)...)
	errs = append(errs, bounds.Filled(path.Child("origin", "name"), spec.Origin.Name, edge.MaxOriginName)...)
	services := path.Child("services")
	if len(spec.Services) == 0 {
		errs = append(errs, field.Required(services, "must have the services that are placed"))
	}
	if tooMany := bounds.Count(services, len(spec.Services), 0, maxServices); len(tooMany) > 0 {
		return append(errs, tooMany...)
	}
	for i := range spec.Services {
		s, at := &spec.Services[i], services.Index(i)
		errs = append(errs, serviceURL(s.Name, at.Child("name"))...)
		errs = append(errs, filledNamespace(s.Org, at.Child("org"))...)
		errs = append(errs, serviceVersion(s.Version, at.Child("version"))...)
		errs = append(errs, arch(s.Arch, anyService, at.Child("arch"))...)
		errs = append(errs, filledNamespace(s.TargetNamespace, at.Child("targetNamespace"))...)
	}
	return errs
}

func filledNamespace(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "must be the name of a namespace")}
	}
	return namespaceName(name, path)
}

func nodeName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "must be the name of an EdgeNode")}
	}
	var errs field.ErrorList
	for _, fault := range apivalidation.NameIsDNSLabel(name, false) {
		errs = append(errs, field.Invalid(path, name, fault))
	}
	return errs
}
