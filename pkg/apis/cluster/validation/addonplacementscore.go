// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// maxScore is the highest score of a cluster; the lowest is as far below 0.
const maxScore = 100

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
	path := field.NewPath("status")
	errs = append(errs, boundConditions(s.Status.Conditions, nil, path)...)
	errs = append(errs, validateConditions(s.Status.Conditions, path.Child("conditions"))...)
	scores := path.Child("scores")
	errs = append(errs, bounds.Count(scores, len(s.Status.Scores), 0, maxScores)...)
	seen := sets.New[string]()
	for i, score := range s.Status.Scores {
		at := scores.Index(i)
		errs = append(errs, validateLength(score.Name, maxName, at.Child("name"))...)
		if seen.Has(score.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), score.Name))
		}
		seen.Insert(score.Name)
		if score.Value < -maxScore || score.Value > maxScore {
			errs = append(errs, field.Invalid(at.Child("value"), score.Value, fmt.Sprintf("must be between -%d and %d", maxScore, maxScore)))
		}
	}
	return errs
}

// ValidateClusterClaim checks a new claim.
func ValidateClusterClaim(c *cluster.ClusterClaim) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&c.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateLength(c.Spec.Value, maxClaimValue, field.NewPath("spec", "value"))...)
}

// ValidateClusterClaimUpdate checks a change of a claim.
func ValidateClusterClaimUpdate(c, old *cluster.ClusterClaim) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&c.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateLength(c.Spec.Value, maxClaimValue, field.NewPath("spec", "value"))...)
}
