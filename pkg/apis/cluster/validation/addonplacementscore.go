// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// ValidateAddOnPlacementScore checks a new AddOnPlacementScore, which has no status yet.
func ValidateAddOnPlacementScore(s *cluster.AddOnPlacementScore) field.ErrorList {
	return apivalidation.ValidateObjectMeta(&s.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// ValidateAddOnPlacementScoreUpdate checks a change of an AddOnPlacementScore.
func ValidateAddOnPlacementScoreUpdate(s, old *cluster.AddOnPlacementScore) field.ErrorList {
	return apivalidation.ValidateObjectMetaUpdate(&s.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
}

// ValidateAddOnPlacementScoreStatusUpdate checks a change of scores.
func ValidateAddOnPlacementScoreStatusUpdate(s, old *cluster.AddOnPlacementScore) field.ErrorList {
	errs := ValidateAddOnPlacementScoreUpdate(s, old)
	return append(errs, validateConditions(s.Status.Conditions, field.NewPath("status", "conditions"))...)
}

// ValidateClusterClaim checks a new claim.
func ValidateClusterClaim(c *cluster.ClusterClaim) field.ErrorList {
	return apivalidation.ValidateObjectMeta(&c.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// ValidateClusterClaimUpdate checks a change of a claim.
func ValidateClusterClaimUpdate(c, old *cluster.ClusterClaim) field.ErrorList {
	return apivalidation.ValidateObjectMetaUpdate(&c.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
}
