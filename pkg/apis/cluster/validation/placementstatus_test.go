// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds/boundstest"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

func TestValidatePlacementStatusUpdate(t *testing.T) {
	validate := func(change func(*cluster.PlacementStatus)) field.ErrorList {
		p := validPlacement()
		change(&p.Status)
		return boundstest.Updated(t, scheme, p, validPlacement(), ValidatePlacementStatusUpdate)
	}
	group := func(change func(*cluster.DecisionGroupStatus)) func(*cluster.PlacementStatus) {
		g := cluster.DecisionGroupStatus{DecisionGroupName: "canary", Decisions: []string{"web-decision-1"}, ClustersCount: 3}
		change(&g)
		return func(s *cluster.PlacementStatus) { s.DecisionGroups = []cluster.DecisionGroupStatus{g} }
	}
	for name, c := range map[string]struct {
		change func(*cluster.PlacementStatus)
		want   []string
	}{
		"a group":         {group(func(*cluster.DecisionGroupStatus) {}), nil},
		"a number":        {func(s *cluster.PlacementStatus) { s.NumberOfSelectedClusters = -1 }, []string{invalid + "status.numberOfSelectedClusters"}},
		"an index":        {group(func(g *cluster.DecisionGroupStatus) { g.DecisionGroupIndex = -1 }), []string{invalid + "status.decisionGroups[0].decisionGroupIndex"}},
		"a count":         {group(func(g *cluster.DecisionGroupStatus) { g.ClustersCount = -1 }), []string{invalid + "status.decisionGroups[0].clusterCount"}},
		"a name":          {group(func(g *cluster.DecisionGroupStatus) { g.DecisionGroupName = strings.Repeat("a", 64) }), []string{tooLong + "status.decisionGroups[0].decisionGroupName"}},
		"a long decision": {group(func(g *cluster.DecisionGroupStatus) { g.Decisions = []string{strings.Repeat("a", 254)} }), []string{tooLong + "status.decisionGroups[0].decisions[0]"}},
		"decisions":       {group(func(g *cluster.DecisionGroupStatus) { g.Decisions = make([]string, 1025) }), []string{tooMany + "status.decisionGroups[0].decisions"}},
		"groups":          {func(s *cluster.PlacementStatus) { s.DecisionGroups = make([]cluster.DecisionGroupStatus, 2049) }, []string{tooMany + "status.decisionGroups"}},
		"conditions":      {func(s *cluster.PlacementStatus) { s.Conditions = conditions(129) }, []string{tooMany + "status.conditions"}},
	} {
		t.Run(name, func(t *testing.T) { wantErrors(t, validate(c.change), c.want...) })
	}
	testConditions(t, "status.conditions", func(c []metav1.Condition) field.ErrorList {
		return validate(func(s *cluster.PlacementStatus) { s.Conditions = c })
	})
}

func TestValidatePlacementDecisionStatusUpdate(t *testing.T) {
	for name, c := range map[string]struct {
		decisions []cluster.ClusterDecision
		want      []string
	}{
		"nothing":        {nil, nil},
		"a hundred":      {some(100, func(i int) cluster.ClusterDecision { return cluster.ClusterDecision{ClusterName: number(i)} }), nil},
		"one more":       {some(101, func(i int) cluster.ClusterDecision { return cluster.ClusterDecision{ClusterName: number(i)} }), []string{tooMany + "status.decisions"}},
		"twice":          {[]cluster.ClusterDecision{{ClusterName: "a"}, {ClusterName: "a"}}, []string{duplicate + "status.decisions[1].clusterName"}},
		"not found yet":  {[]cluster.ClusterDecision{{}, {}}, nil},
		"a long name":    {[]cluster.ClusterDecision{{ClusterName: strings.Repeat("a", 254)}}, []string{tooLong + "status.decisions[0].clusterName"}},
		"a long reason":  {[]cluster.ClusterDecision{{ClusterName: "a", Reason: strings.Repeat("a", 1025)}}, []string{tooLong + "status.decisions[0].reason"}},
		"a negative sum": {[]cluster.ClusterDecision{{ClusterName: "a", Score: -1000}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			old := &cluster.PlacementDecision{ObjectMeta: stored("web-decision-1")}
			d := old.DeepCopy()
			d.Status.Decisions = c.decisions
			wantErrors(t, boundstest.Updated(t, scheme, d, old, ValidatePlacementDecisionStatusUpdate), c.want...)
		})
	}
}

func TestValidateAddOnPlacementScoreStatusUpdate(t *testing.T) {
	validate := func(change func(*cluster.AddOnPlacementScoreStatus)) field.ErrorList {
		old := &cluster.AddOnPlacementScore{ObjectMeta: stored("load")}
		s := old.DeepCopy()
		change(&s.Status)
		return boundstest.Updated(t, scheme, s, old, ValidateAddOnPlacementScoreStatusUpdate)
	}
	for name, c := range map[string]struct {
		scores []cluster.AddOnPlacementScoreItem
		want   []string
	}{
		"scores":    {[]cluster.AddOnPlacementScoreItem{{Name: "cpu", Value: 100}, {Name: "memory", Value: -100}}, nil},
		"too high":  {[]cluster.AddOnPlacementScoreItem{{Name: "cpu", Value: 101}}, []string{invalid + "status.scores[0].value"}},
		"too low":   {[]cluster.AddOnPlacementScoreItem{{Name: "cpu", Value: -101}}, []string{invalid + "status.scores[0].value"}},
		"nameless":  {[]cluster.AddOnPlacementScoreItem{{}}, []string{required + "status.scores[0].name"}},
		"too long":  {[]cluster.AddOnPlacementScoreItem{{Name: strings.Repeat("a", 254)}}, []string{tooLong + "status.scores[0].name"}},
		"twice":     {[]cluster.AddOnPlacementScoreItem{{Name: "cpu"}, {Name: "cpu"}}, []string{duplicate + "status.scores[1]"}},
		"very many": {some(513, func(i int) cluster.AddOnPlacementScoreItem { return cluster.AddOnPlacementScoreItem{Name: number(i)} }), []string{tooMany + "status.scores"}},
	} {
		t.Run(name, func(t *testing.T) {
			wantErrors(t, validate(func(s *cluster.AddOnPlacementScoreStatus) { s.Scores = c.scores }), c.want...)
		})
	}
	testConditions(t, "status.conditions", func(c []metav1.Condition) field.ErrorList {
		return validate(func(s *cluster.AddOnPlacementScoreStatus) { s.Conditions = c })
	})
}

func TestValidateClusterClaim(t *testing.T) {
	for value, want := range map[string][]string{
		"x": nil, strings.Repeat("x", 1024): nil, "": {required + "spec.value"}, strings.Repeat("x", 1025): {tooLong + "spec.value"},
	} {
		c := &cluster.ClusterClaim{ObjectMeta: stored("id.k8s.io"), Spec: cluster.ClusterClaimSpec{Value: value}}
		wantErrors(t, boundstest.Created(t, scheme, c, ValidateClusterClaim), append([]string{}, want...)...)
		wantErrors(t, boundstest.Updated(t, scheme, c, &cluster.ClusterClaim{ObjectMeta: c.ObjectMeta, Spec: cluster.ClusterClaimSpec{Value: "old"}}, ValidateClusterClaimUpdate), want...)
	}
}
