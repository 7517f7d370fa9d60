// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds/boundstest"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

const (
	tooMany = "FieldValueTooMany "

	policy    = "spec.prioritizerPolicy."
	spread    = "spec.spreadPolicy.spreadConstraints[0]."
	groups    = "spec.decisionStrategy.groupStrategy."
	tolerated = "spec.tolerations[0]."
	selector0 = "spec.predicates[0].requiredClusterSelector."
)

// validPlacement has the defaults that decoding fills in.
func validPlacement() *cluster.Placement {
	p := &cluster.Placement{ObjectMeta: stored("web")}
	p.Namespace = "dev"
	p.Spec.PrioritizerPolicy.Mode = cluster.PrioritizerPolicyModeAdditive
	p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = intstr.FromString("100%")
	p.Spec.SortBy, p.Spec.ScoreRateLimit = cluster.PlacementSortByClusterName, "1m"
	return p
}

func prioritizer(change func(*cluster.PrioritizerConfig)) func(*cluster.PlacementSpec) {
	c := cluster.PrioritizerConfig{
		ScoreCoordinate: &cluster.ScoreCoordinate{Type: cluster.ScoreCoordinateTypeBuiltIn, BuiltIn: cluster.PrioritizerBalance},
		Weight:          new(int32(1)),
	}
	change(&c)
	return func(s *cluster.PlacementSpec) { s.PrioritizerPolicy.Configurations = []cluster.PrioritizerConfig{c} }
}

func coordinate(c cluster.ScoreCoordinate) func(*cluster.PlacementSpec) {
	return prioritizer(func(p *cluster.PrioritizerConfig) { p.ScoreCoordinate = &c })
}

func constraint(change func(*cluster.SpreadConstraintsTerm)) func(*cluster.PlacementSpec) {
	c := cluster.SpreadConstraintsTerm{TopologyKey: "zone", TopologyKeyType: "Label", MaxSkew: 1, WhenUnsatisfiable: "DoNotSchedule"}
	change(&c)
	return func(s *cluster.PlacementSpec) { s.SpreadPolicy.SpreadConstraints = []cluster.SpreadConstraintsTerm{c} }
}

func toleration(t cluster.Toleration) func(*cluster.PlacementSpec) {
	return func(s *cluster.PlacementSpec) { s.Tolerations = []cluster.Toleration{t} }
}

func group(name string) func(*cluster.PlacementSpec) {
	return func(s *cluster.PlacementSpec) {
		s.DecisionStrategy.GroupStrategy.DecisionGroups = []cluster.DecisionGroup{{GroupName: name}}
	}
}

func groupsOf(n intstr.IntOrString) func(*cluster.PlacementSpec) {
	return func(s *cluster.PlacementSpec) { s.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = n }
}

func predicate(selector cluster.ClusterSelector) func(*cluster.PlacementSpec) {
	return func(s *cluster.PlacementSpec) {
		s.Predicates = append(s.Predicates, cluster.ClusterPredicate{RequiredClusterSelector: selector})
	}
}

func expressions(n int) cluster.ClusterSelector {
	return cluster.ClusterSelector{CelSelector: cluster.ClusterCelSelector{CelExpressions: some(n, func(int) string { return "true" })}}
}

func TestValidatePlacement(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*cluster.PlacementSpec)
		want   []string
	}{
		"defaults":        {func(*cluster.PlacementSpec) {}, nil},
		"sets":            {func(s *cluster.PlacementSpec) { s.ClusterSets = []string{"dev", "qa"} }, nil},
		"a nameless set":  {func(s *cluster.PlacementSpec) { s.ClusterSets = []string{"dev", ""} }, []string{tooShort + "spec.clusterSets[1]"}},
		"no cluster":      {func(s *cluster.PlacementSpec) { s.NumberOfClusters = new(int32(0)) }, nil},
		"below no number": {func(s *cluster.PlacementSpec) { s.NumberOfClusters = new(int32(-1)) }, []string{invalid + "spec.numberOfClusters"}},
		"another order":   {func(s *cluster.PlacementSpec) { s.SortBy = "Name" }, []string{unsupported + "spec.sortBy"}},
		"a limit":         {func(s *cluster.PlacementSpec) { s.ScoreRateLimit = "2h" }, nil},
		"a limit in days": {func(s *cluster.PlacementSpec) { s.ScoreRateLimit = "2d" }, []string{invalid + "spec.scoreRateLimit"}},
		"a sum of times":  {func(s *cluster.PlacementSpec) { s.ScoreRateLimit = "1m30s" }, []string{invalid + "spec.scoreRateLimit"}},
		"a limit that no duration can have": {func(s *cluster.PlacementSpec) { s.ScoreRateLimit = "999999999999999h" },
			[]string{invalid + "spec.scoreRateLimit"}},

		"a label selector": {predicate(cluster.ClusterSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}), nil},
		"a bad label": {predicate(cluster.ClusterSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "no spaces"}}}),
			[]string{invalid + selector0 + "labelSelector.matchLabels"}},
		"a bad operator": {predicate(cluster.ClusterSelector{LabelSelector: *requirement("Gt", "1")}),
			[]string{invalid + selector0 + "labelSelector.matchExpressions[0].operator"}},
		"a claim": {predicate(cluster.ClusterSelector{ClaimSelector: cluster.ClusterClaimSelector{MatchExpressions: requirement("Exists").MatchExpressions}}), nil},
		"a claim in nothing": {predicate(cluster.ClusterSelector{ClaimSelector: cluster.ClusterClaimSelector{MatchExpressions: requirement("In").MatchExpressions}}),
			[]string{required + selector0 + "claimSelector.matchExpressions[0].values"}},
		"no expression":                        {predicate(cluster.ClusterSelector{CelSelector: cluster.ClusterCelSelector{CelExpressions: []string{}}}), nil},
		"an empty expression":                  {predicate(cluster.ClusterSelector{CelSelector: cluster.ClusterCelSelector{CelExpressions: []string{""}}}), []string{tooShort + selector0 + "celSelector.celExpressions[0]"}},
		"too many expressions of one selector": {predicate(expressions(17)), []string{tooMany + selector0 + "celSelector.celExpressions"}},
		"too many expressions of all selectors": {func(s *cluster.PlacementSpec) {
			for range 5 {
				predicate(expressions(13))(s)
			}
		}, []string{forbidden + "spec.predicates"}},

		"exact":        {func(s *cluster.PlacementSpec) { s.PrioritizerPolicy.Mode = "Exact" }, nil},
		"another mode": {func(s *cluster.PlacementSpec) { s.PrioritizerPolicy.Mode = "exact" }, []string{unsupported + policy + "mode"}},
		"no coordinate": {prioritizer(func(p *cluster.PrioritizerConfig) { p.ScoreCoordinate = nil }),
			[]string{required + policy + "configurations[0].scoreCoordinate"}},
		"weights": {prioritizer(func(p *cluster.PrioritizerConfig) { p.Weight = new(int32(-10)) }), nil},
		"a heavy prioritizer": {prioritizer(func(p *cluster.PrioritizerConfig) { p.Weight = new(int32(11)) }),
			[]string{invalid + policy + "configurations[0].weight"}},
		"a light prioritizer": {prioritizer(func(p *cluster.PrioritizerConfig) { p.Weight = new(int32(-11)) }),
			[]string{invalid + policy + "configurations[0].weight"}},
		"another type": {coordinate(cluster.ScoreCoordinate{Type: "Other"}), []string{unsupported + policy + "configurations[0].scoreCoordinate.type"}},
		"a prioritizer that there is not": {coordinate(cluster.ScoreCoordinate{Type: "BuiltIn", BuiltIn: "Spread"}),
			[]string{unsupported + policy + "configurations[0].scoreCoordinate.builtIn"}},
		"no prioritizer": {coordinate(cluster.ScoreCoordinate{Type: "BuiltIn"}), []string{required + policy + "configurations[0].scoreCoordinate.builtIn"}},
		"no scores":      {coordinate(cluster.ScoreCoordinate{Type: "AddOn"}), []string{required + policy + "configurations[0].scoreCoordinate.addOn"}},
		"scores":         {coordinate(cluster.ScoreCoordinate{Type: "AddOn", AddOn: &cluster.AddOnScore{ResourceName: "load", ScoreName: "cpu"}}), nil},
		"nameless scores": {coordinate(cluster.ScoreCoordinate{Type: "AddOn", AddOn: &cluster.AddOnScore{}}), []string{
			required + policy + "configurations[0].scoreCoordinate.addOn.resourceName", required + policy + "configurations[0].scoreCoordinate.addOn.scoreName"}},

		"spread":         {constraint(func(*cluster.SpreadConstraintsTerm) {}), nil},
		"no topology":    {constraint(func(c *cluster.SpreadConstraintsTerm) { c.TopologyKey = "" }), []string{required + spread + "topologyKey"}},
		"a bad topology": {constraint(func(c *cluster.SpreadConstraintsTerm) { c.TopologyKey = "a b" }), []string{invalid + spread + "topologyKey"}},
		"a long topology": {constraint(func(c *cluster.SpreadConstraintsTerm) { c.TopologyKey = strings.Repeat("a", 317) }),
			[]string{tooLong + spread + "topologyKey"}},
		"no type":      {constraint(func(c *cluster.SpreadConstraintsTerm) { c.TopologyKeyType = "" }), []string{required + spread + "topologyKeyType"}},
		"a bad type":   {constraint(func(c *cluster.SpreadConstraintsTerm) { c.TopologyKeyType = "label" }), []string{unsupported + spread + "topologyKeyType"}},
		"no skew":      {constraint(func(c *cluster.SpreadConstraintsTerm) { c.MaxSkew = 0 }), []string{invalid + spread + "maxSkew"}},
		"a bad action": {constraint(func(c *cluster.SpreadConstraintsTerm) { c.WhenUnsatisfiable = "Wait" }), []string{unsupported + spread + "whenUnsatisfiable"}},

		"a toleration":       {toleration(cluster.Toleration{Key: "example.com/a", Operator: "Equal", Value: "v", Effect: "NoSelectIfNew", TolerationSeconds: new(int64(0))}), nil},
		"of every key":       {toleration(cluster.Toleration{Operator: "Exists"}), nil},
		"no key":             {toleration(cluster.Toleration{Operator: "Equal"}), []string{invalid + tolerated + "operator"}},
		"a bad key":          {toleration(cluster.Toleration{Key: "a b", Operator: "Exists"}), []string{invalid + tolerated + "key"}},
		"a long key":         {toleration(cluster.Toleration{Key: strings.Repeat("a", 317), Operator: "Exists"}), []string{tooLong + tolerated + "key"}},
		"any value, and one": {toleration(cluster.Toleration{Key: "a", Operator: "Exists", Value: "v"}), []string{invalid + tolerated + "value"}},
		"a long value":       {toleration(cluster.Toleration{Key: "a", Operator: "Equal", Value: strings.Repeat("a", 1025)}), []string{tooLong + tolerated + "value"}},
		"another operator":   {toleration(cluster.Toleration{Key: "a", Operator: "In"}), []string{unsupported + tolerated + "operator"}},
		"another effect":     {toleration(cluster.Toleration{Key: "a", Operator: "Exists", Effect: "NoExecute"}), []string{unsupported + tolerated + "effect"}},
		"time that has gone": {toleration(cluster.Toleration{Key: "a", Operator: "Exists", TolerationSeconds: new(int64(-1))}),
			[]string{invalid + tolerated + "tolerationSeconds"}},

		"a group":           {group("canary"), nil},
		"no name":           {group(""), []string{tooShort + groups + "decisionGroups[0].groupName"}},
		"a letter":          {group("a"), []string{tooShort + groups + "decisionGroups[0].groupName"}},
		"a long name":       {group(strings.Repeat("a", 64)), []string{tooLong + groups + "decisionGroups[0].groupName"}},
		"groups of two":     {groupsOf(intstr.FromInt32(2)), nil},
		"of a text":         {groupsOf(intstr.FromString("2")), nil},
		"of a part":         {groupsOf(intstr.FromString("25%")), nil},
		"of nothing":        {groupsOf(intstr.FromString("0%")), []string{invalid + groups + "clustersPerDecisionGroup"}},
		"of too much":       {groupsOf(intstr.FromString("101%")), []string{invalid + groups + "clustersPerDecisionGroup"}},
		"of an empty text":  {groupsOf(intstr.FromString("")), []string{invalid + groups + "clustersPerDecisionGroup"}},
		"below one":         {groupsOf(intstr.FromInt32(-1)), []string{invalid + groups + "clustersPerDecisionGroup"}},
		"of a great number": {groupsOf(intstr.FromString("99999999999")), []string{invalid + groups + "clustersPerDecisionGroup"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := validPlacement()
			c.change(&p.Spec)
			wantErrors(t, boundstest.Created(t, scheme, p, ValidatePlacement), slices.Clone(c.want)...)
			wantErrors(t, boundstest.Updated(t, scheme, p, validPlacement(), ValidatePlacementUpdate), c.want...)
		})
	}
}

func TestValidatePlacement_NameIsLabelValue(t *testing.T) {
	p := validPlacement()
	for name, want := range map[string][]string{
		strings.Repeat("a", 63): nil, "a.b": nil,
		strings.Repeat("a", 64): {invalid + "metadata.name"}, strings.Repeat("a.", 40) + "a": {invalid + "metadata.name"},
	} {
		p.Name = name
		wantErrors(t, boundstest.Created(t, scheme, p, ValidatePlacement), want...)
	}
}
