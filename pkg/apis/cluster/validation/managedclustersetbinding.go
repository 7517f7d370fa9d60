// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// ValidateManagedClusterSetBinding checks a new binding.
func ValidateManagedClusterSetBinding(b *cluster.ManagedClusterSetBinding) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&b.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if b.Spec.ClusterSet != b.Name {
		errs = append(errs, field.Invalid(field.NewPath("spec", "clusterSet"), b.Spec.ClusterSet,
			"The ManagedClusterSetBinding must have the same name as the target ManagedClusterSet"))
	}
	return errs
}

// ValidateManagedClusterSetBindingUpdate checks a change of a binding, whose set cannot change.
func ValidateManagedClusterSetBindingUpdate(b, old *cluster.ManagedClusterSetBinding) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&b.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, apivalidation.ValidateImmutableField(b.Spec.ClusterSet, old.Spec.ClusterSet, field.NewPath("spec", "clusterSet"))...)
}

// ValidateManagedClusterSetBindingStatusUpdate checks a change of a binding's status.
func ValidateManagedClusterSetBindingStatusUpdate(b, old *cluster.ManagedClusterSetBinding) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&b.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateConditions(b.Status.Conditions, field.NewPath("status", "conditions"))...)
}
