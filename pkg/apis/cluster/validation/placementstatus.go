// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// ValidatePlacementStatusUpdate checks a change of a placement's status.
func ValidatePlacementStatusUpdate(p, old *cluster.Placement) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&p.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateConditions(p.Status.Conditions, field.NewPath("status", "conditions"))...)
}

// ValidatePlacementDecision checks a new decision, which has no status yet.
func ValidatePlacementDecision(d *cluster.PlacementDecision) field.ErrorList {
	return apivalidation.ValidateObjectMeta(&d.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// ValidatePlacementDecisionUpdate checks a change of a decision.
func ValidatePlacementDecisionUpdate(d, old *cluster.PlacementDecision) field.ErrorList {
	return apivalidation.ValidateObjectMetaUpdate(&d.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
}

// ValidatePlacementDecisionStatusUpdate checks a change of a decision's status.
func ValidatePlacementDecisionStatusUpdate(d, old *cluster.PlacementDecision) field.ErrorList {
	errs := ValidatePlacementDecisionUpdate(d, old)
	path := field.NewPath("status", "decisions")
	seen := sets.New[string]()
	for i := range d.Status.Decisions {
		one, at := &d.Status.Decisions[i], path.Index(i)
		// Without a name it is a cluster that was not found yet, and there may be several of these.
		if one.ClusterName != "" && seen.Has(one.ClusterName) {
			errs = append(errs, field.Duplicate(at.Child("clusterName"), one.ClusterName))
		}
		seen.Insert(one.ClusterName)
	}
	return errs
}
