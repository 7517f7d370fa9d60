// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/author"
	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	clustervalidation "github.com/clusterhub/clusterhub/pkg/apis/cluster/validation"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

var cascadePolicies = []work.CascadeDeletionPolicy{work.Background, work.Foreground}

// ValidateManifestWorkReplicaSet checks a new replica set, besides BadManifestWorkReplicaSet.
func ValidateManifestWorkReplicaSet(s *work.ManifestWorkReplicaSet) field.ErrorList {
	path := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMeta(&s.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, path)
	errs = append(errs, author.Validate(work.AuthorAnnotation, &s.ObjectMeta, &metav1.ObjectMeta{})...)
	if len(s.Namespace)+1+len(s.Name) > validation.LabelValueMaxLength {
		errs = append(errs, field.Invalid(path.Child("name"), s.Name, fmt.Sprintf(
			"must have at most %d characters in the namespace %s: %s.<name> is the value of the label %s of every work, which has at most %d",
			max(0, validation.LabelValueMaxLength-1-len(s.Namespace)), s.Namespace, s.Namespace, work.ReplicaSetLabel, validation.LabelValueMaxLength)))
	}
	return append(errs, validateReplicaSetSpec(&s.Spec, &work.ManifestWorkReplicaSetSpec{}, field.NewPath("spec"))...)
}

// ValidateManifestWorkReplicaSetUpdate checks a change of a replica set, besides BadManifestWorkReplicaSet.
func ValidateManifestWorkReplicaSetUpdate(s, old *work.ManifestWorkReplicaSet) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&s.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, author.Validate(work.AuthorAnnotation, &s.ObjectMeta, &old.ObjectMeta)...)
	return append(errs, validateReplicaSetSpec(&s.Spec, &old.Spec, field.NewPath("spec"))...)
}

// BadManifestWorkReplicaSet returns the faults of the works of a replica set that upstream's webhook rejects.
func BadManifestWorkReplicaSet(s, old *work.ManifestWorkReplicaSet) field.ErrorList {
	return badWorkSpec(&s.Spec.ManifestWorkTemplate, &old.Spec.ManifestWorkTemplate, field.NewPath("spec", "manifestWorkTemplate"))
}

func validateReplicaSetSpec(spec, old *work.ManifestWorkReplicaSetSpec, path *field.Path) field.ErrorList {
	errs := validateWorkSpec(&spec.ManifestWorkTemplate, &old.ManifestWorkTemplate, path.Child("manifestWorkTemplate"))
	names := sets.New[string]()
	for i := range spec.PlacementRefs {
		r, at := &spec.PlacementRefs[i], path.Child("placementRefs").Index(i)
		if names.Has(r.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), r.Name))
		}
		names.Insert(r.Name)
		errs = append(errs, clustervalidation.ValidateRolloutStrategy(&r.RolloutStrategy, at.Child("rolloutStrategy"))...)
	}
	return append(errs, bounds.OneOf(path.Child("cascadeDeletionPolicy"), spec.CascadeDeletionPolicy, cascadePolicies)...)
}

// ValidateManifestWorkReplicaSetStatusUpdate validates an update of the status of a replica set.
func ValidateManifestWorkReplicaSetStatusUpdate(s, old *work.ManifestWorkReplicaSet) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&s.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, metav1validation.ValidateConditions(s.Status.Conditions, field.NewPath("status", "conditions"))...)
}
