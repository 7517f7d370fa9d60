// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

var (
	rateLimit = regexp.MustCompile(`^[0-9]+[hms]$`)

	sortOrders   = []cluster.PlacementSortByType{cluster.PlacementSortByClusterName, cluster.PlacementSortByScore}
	policyModes  = []cluster.PrioritizerPolicyModeType{cluster.PrioritizerPolicyModeAdditive, cluster.PrioritizerPolicyModeExact}
	scoreTypes   = []string{cluster.ScoreCoordinateTypeBuiltIn, cluster.ScoreCoordinateTypeAddOn}
	ofTheHub     = []string{cluster.PrioritizerBalance, cluster.PrioritizerSteady, cluster.PrioritizerResourceAllocatableCPU, cluster.PrioritizerResourceAllocatableMemory}
	strictLabels = metav1validation.LabelSelectorValidationOptions{}
)

// ValidatePlacement checks a new placement, but not what its CEL expressions say.
func ValidatePlacement(p *cluster.Placement) field.ErrorList {
	path := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMeta(&p.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, path)
	for _, message := range validation.IsValidLabelValue(p.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), p.Name,
			"must be a valid value of the label "+cluster.PlacementLabel+", which identifies its PlacementDecisions: "+message))
	}
	return append(errs, validatePlacementSpec(&p.Spec, field.NewPath("spec"))...)
}

// ValidatePlacementUpdate checks a change of a placement, but not what its CEL expressions say.
func ValidatePlacementUpdate(p, old *cluster.Placement) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&p.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validatePlacementSpec(&p.Spec, field.NewPath("spec"))...)
}

func validatePlacementSpec(spec *cluster.PlacementSpec, path *field.Path) field.ErrorList {
	errs := validatePredicates(spec.Predicates, path.Child("predicates"))
	errs = append(errs, validatePrioritizerPolicy(&spec.PrioritizerPolicy, path.Child("prioritizerPolicy"))...)
	errs = append(errs, validateSpreadConstraints(spec.SpreadPolicy.SpreadConstraints, path.Child("spreadPolicy", "spreadConstraints"))...)
	errs = append(errs, validateTolerations(spec.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, validateGroupStrategy(&spec.DecisionStrategy.GroupStrategy, path.Child("decisionStrategy", "groupStrategy"))...)
	errs = append(errs, oneOf(spec.SortBy, sortOrders, path.Child("sortBy"))...)
	return append(errs, validateRateLimit(spec.ScoreRateLimit, path.Child("scoreRateLimit"))...)
}

func validatePredicates(predicates []cluster.ClusterPredicate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	all := 0
	for i := range predicates {
		at, s := path.Index(i).Child("requiredClusterSelector"), &predicates[i].RequiredClusterSelector
		errs = append(errs, validateLabelSelector(&s.LabelSelector, at.Child("labelSelector"))...)
		errs = append(errs, validateClaims(&s.ClaimSelector, at.Child("claimSelector"))...)
		all += len(s.CelSelector.CelExpressions)
	}
	if all > maxAllExpressions {
		errs = append(errs, field.Forbidden(path, fmt.Sprintf("has %d CEL expressions in all of its selectors, and may have %d", all, maxAllExpressions)))
	}
	return errs
}

func validateLabelSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if errs := boundSelector(s, nil, path); len(errs) > 0 {
		return errs
	}
	return metav1validation.ValidateLabelSelector(s, strictLabels, path)
}

// validateClaims holds requirements on claims to what requirements on labels are held to: that is how they are compared.
func validateClaims(s *cluster.ClusterClaimSelector, path *field.Path) field.ErrorList {
	at := path.Child("matchExpressions")
	errs := boundValues(s.MatchExpressions, nil, at)
	if len(errs) > 0 {
		return errs
	}
	for i, requirement := range s.MatchExpressions {
		errs = append(errs, metav1validation.ValidateLabelSelectorRequirement(requirement, strictLabels, at.Index(i))...)
	}
	return errs
}

func validatePrioritizerPolicy(policy *cluster.PrioritizerPolicy, path *field.Path) field.ErrorList {
	errs := oneOf(policy.Mode, policyModes, path.Child("mode"))
	configurations := path.Child("configurations")
	for i := range policy.Configurations {
		errs = append(errs, validateCoordinate(policy.Configurations[i].ScoreCoordinate, configurations.Index(i).Child("scoreCoordinate"))...)
	}
	return errs
}

func validateCoordinate(c *cluster.ScoreCoordinate, path *field.Path) field.ErrorList {
	errs := oneOf(c.Type, scoreTypes, path.Child("type"))
	switch c.Type {
	case cluster.ScoreCoordinateTypeBuiltIn:
		if c.BuiltIn == "" {
			return append(errs, field.Required(path.Child("builtIn"), "type BuiltIn needs the name of a prioritizer, such as Balance"))
		}
		errs = append(errs, oneOf(c.BuiltIn, ofTheHub, path.Child("builtIn"))...)
	case cluster.ScoreCoordinateTypeAddOn:
		if c.AddOn == nil {
			errs = append(errs, field.Required(path.Child("addOn"), "type AddOn needs the name of the AddOnPlacementScores, and that of a score in them"))
		}
	}
	return errs
}

func validateRateLimit(limit string, path *field.Path) field.ErrorList {
	if _, err := time.ParseDuration(limit); err != nil || !rateLimit.MatchString(limit) {
		return field.ErrorList{field.Invalid(path, limit, "must be a whole number and h, m or s, such as 30s")}
	}
	return nil
}

// oneOf rejects a value that is not in values.
func oneOf[T ~string](value T, values []T, path *field.Path) field.ErrorList {
	return bounds.OneOf(path, value, values)
}
