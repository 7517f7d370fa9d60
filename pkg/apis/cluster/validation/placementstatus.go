// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// ValidatePlacementStatusUpdate checks a change of a placement's status.
func ValidatePlacementStatusUpdate(p, old *cluster.Placement) field.ErrorList {
	path := field.NewPath("status")
	errs := apivalidation.ValidateObjectMetaUpdate(&p.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(p.Status.NumberOfSelectedClusters), path.Child("numberOfSelectedClusters"))...)
	groups := path.Child("decisionGroups")
	errs = append(errs, bounds.Count(groups, len(p.Status.DecisionGroups), 0, maxGroups)...)
	for i := range p.Status.DecisionGroups {
		g, at := &p.Status.DecisionGroups[i], groups.Index(i)
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(g.DecisionGroupIndex), at.Child("decisionGroupIndex"))...)
		errs = append(errs, bounds.Length(at.Child("decisionGroupName"), g.DecisionGroupName, 0, validation.LabelValueMaxLength)...)
		errs = append(errs, bounds.Count(at.Child("decisions"), len(g.Decisions), 0, maxGroupDecisions)...)
		errs = append(errs, bounds.Each(at.Child("decisions"), "", g.Decisions, nil, maxName, func(name *string) string { return *name })...)
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(g.ClustersCount), at.Child("clusterCount"))...)
	}
	errs = append(errs, boundConditions(p.Status.Conditions, nil, path)...)
	return append(errs, validateConditions(p.Status.Conditions, path.Child("conditions"))...)
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
	errs = append(errs, bounds.Count(path, len(d.Status.Decisions), 0, maxDecisions)...)
	seen := sets.New[string]()
	for i := range d.Status.Decisions {
		one, at := &d.Status.Decisions[i], path.Index(i)
		errs = append(errs, bounds.Length(at.Child("clusterName"), one.ClusterName, 0, maxName)...)
		errs = append(errs, bounds.Length(at.Child("reason"), one.Reason, 0, maxReason)...)
		// Without a name it is a cluster that was not found yet, and there may be several of these.
		if one.ClusterName != "" && seen.Has(one.ClusterName) {
			errs = append(errs, field.Duplicate(at.Child("clusterName"), one.ClusterName))
		}
		seen.Insert(one.ClusterName)
	}
	return errs
}
