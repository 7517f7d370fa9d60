// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// maxGroupLength is the length of the text of the largest number that fits.
const maxGroupLength = 10

// What upstream's CustomResourceDefinition of placements says.
var (
	topologyKey = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`)
	groupName   = regexp.MustCompile(`^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$`)
	groupLength = regexp.MustCompile(`^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$`)

	topologyKeyTypes    = []cluster.TopologyKeyType{cluster.TopologyKeyTypeLabel, cluster.TopologyKeyTypeClaim}
	unsatisfiable       = []cluster.UnsatisfiableMaxSkewAction{cluster.DoNotSchedule, cluster.ScheduleAnyway}
	tolerationOperators = []cluster.TolerationOperator{cluster.TolerationOpEqual, cluster.TolerationOpExists}
)

func validateSpreadConstraints(constraints []cluster.SpreadConstraintsTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range constraints {
		c, at := &constraints[i], path.Index(i)
		if !topologyKey.MatchString(c.TopologyKey) {
			errs = append(errs, field.Invalid(at.Child("topologyKey"), c.TopologyKey,
				"must be the key of a label, or the name of a claim that could be one"))
		}
		if c.TopologyKeyType == "" {
			errs = append(errs, field.Required(at.Child("topologyKeyType"), "must be Label or Claim"))
		} else {
			errs = append(errs, oneOf(c.TopologyKeyType, topologyKeyTypes, at.Child("topologyKeyType"))...)
		}
		if c.MaxSkew < 1 {
			errs = append(errs, field.Invalid(at.Child("maxSkew"), c.MaxSkew, "must be 1 or more"))
		}
		errs = append(errs, oneOf(c.WhenUnsatisfiable, unsatisfiable, at.Child("whenUnsatisfiable"))...)
	}
	return errs
}

func validateTolerations(tolerations []cluster.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range tolerations {
		errs = append(errs, validateToleration(&tolerations[i], path.Index(i))...)
	}
	return errs
}

func validateToleration(t *cluster.Toleration, path *field.Path) field.ErrorList {
	errs := oneOf(t.Operator, tolerationOperators, path.Child("operator"))
	switch {
	case t.Key == "" && t.Operator != cluster.TolerationOpExists:
		errs = append(errs, field.Invalid(path.Child("operator"), t.Operator, "If the key is empty, operator must be Exists."))
	case t.Key != "" && !taintKey.MatchString(t.Key):
		errs = append(errs, field.Invalid(path.Child("key"), t.Key, "must be a qualified name, with an optional DNS subdomain and '/' before it"))
	}
	if t.Operator == cluster.TolerationOpExists && t.Value != "" {
		errs = append(errs, field.Invalid(path.Child("value"), t.Value, "If the operator is Exists, the value should be empty."))
	}
	if t.Effect != "" {
		errs = append(errs, oneOf(t.Effect, taintEffects, path.Child("effect"))...)
	}
	return errs
}

func validateGroupStrategy(s *cluster.GroupStrategy, path *field.Path) field.ErrorList {
	groups := path.Child("decisionGroups")
	var errs field.ErrorList
	for i := range s.DecisionGroups {
		g, at := &s.DecisionGroups[i], groups.Index(i)
		if !groupName.MatchString(g.GroupName) {
			errs = append(errs, field.Invalid(at.Child("groupName"), g.GroupName,
				"must be 2 to 63 letters, digits, '-', '_' or '.', and begin and end with a letter or digit"))
		}
		selector := at.Child("groupClusterSelector")
		errs = append(errs, validateLabelSelector(&g.ClusterSelector.LabelSelector, selector.Child("labelSelector"))...)
		errs = append(errs, validateClaims(&g.ClusterSelector.ClaimSelector, selector.Child("claimSelector"))...)
	}
	const want = `must be 1 or more, or a percentage from "1%" to "100%"`
	length := s.ClustersPerDecisionGroup
	if length.Type == intstr.Int && length.IntVal < 1 || length.Type == intstr.String && (len(length.StrVal) > maxGroupLength || !groupLength.MatchString(length.StrVal)) {
		errs = append(errs, field.Invalid(path.Child("clustersPerDecisionGroup"), length.String(), want))
	}
	return errs
}
