// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

// PlacementStep is a step that a cluster goes through.
type PlacementStep struct {
	Name, Says string
	// Fell reports whether the step drops the cluster, and Only whether it drops all clusters.
	Fell, Only bool
}

// PlacementSteps returns the steps of a cluster in an explanation. The placement may be nil.
func PlacementSteps(p *v1beta1.Placement, c *v1beta1.ExplainedCluster) []PlacementStep {
	fell := func(by string) bool { return c.FilteredBy == by }
	all := []PlacementStep{{Name: "Sets", Says: setStep(p, c), Fell: fell("ClusterSet")}}
	if fell("Deletion") {
		return append(all, PlacementStep{Name: "Deletion", Says: "the cluster is being deleted", Fell: true})
	}
	all = append(all, PlacementStep{Name: "Predicates", Says: predicateStep(p, c), Fell: fell("Predicate")},
		PlacementStep{Name: "Taints", Says: taintStep(c), Fell: fell("TaintToleration")})
	for i := range c.Scores {
		s := &c.Scores[i]
		says := "not shown: it compares the cluster with others that you may not see"
		if s.Score != nil {
			says = fmt.Sprintf("%d × weight %d = %d", *s.Score, s.Weight, int64(*s.Score)*int64(s.Weight))
		}
		all = append(all, PlacementStep{Name: s.Name, Says: says, Only: true})
	}
	if c.TotalScore != nil && c.Rank != nil {
		all = append(all, PlacementStep{Name: "Total", Says: fmt.Sprintf("%d: rank %d of the clusters that passed and that you may see", *c.TotalScore, *c.Rank), Only: true})
	}
	all = append(all, PlacementStep{Name: "Spread", Says: spreadStep(p, c), Fell: fell("Spread")},
		PlacementStep{Name: "Number", Says: numberStep(p, c), Fell: fell("NumberOfClusters")})
	return append(all, PlacementStep{Name: "Decision", Says: fmt.Sprintf("group %s, PlacementDecision %s", GroupOf(c), c.DecisionName), Only: true})
}

func setStep(p *v1beta1.Placement, c *v1beta1.ExplainedCluster) string {
	from := "those that are bound to the namespace"
	if p != nil && len(p.Spec.ClusterSets) > 0 {
		from += " and that the placement names: " + strings.Join(p.Spec.ClusterSets, ", ")
	}
	if c.FilteredBy == "ClusterSet" {
		return "in none of " + from
	}
	if len(c.ClusterSets) == 0 {
		return "in a set of the placement that you may not see"
	}
	return "in " + strings.Join(c.ClusterSets, ", ") + ", of " + from
}

func predicateStep(p *v1beta1.Placement, c *v1beta1.ExplainedCluster) string {
	if c.FilteredBy != "Predicate" {
		if p != nil && len(p.Spec.Predicates) == 0 {
			return "the placement has none"
		}
		return "matches one"
	}
	parts := make([]string, len(c.Mismatches))
	for i, m := range c.Mismatches {
		parts[i] = fmt.Sprintf("predicate %d: its %s does not match", m.Predicate, m.Selector)
		if p != nil {
			parts[i] += selectorText(p, m)
		}
	}
	return strings.Join(parts, "; ")
}

// selectorText returns a short form of the selector of a predicate. The placement may have changed since the explanation.
func selectorText(p *v1beta1.Placement, m v1beta1.PredicateMismatch) string {
	if int(m.Predicate) >= len(p.Spec.Predicates) {
		return ""
	}
	selector := &p.Spec.Predicates[m.Predicate].RequiredClusterSelector
	text := ""
	switch m.Selector {
	case "labelSelector":
		text = metav1.FormatLabelSelector(&selector.LabelSelector)
	case "claimSelector":
		text = metav1.FormatLabelSelector(&metav1.LabelSelector{MatchExpressions: selector.ClaimSelector.MatchExpressions})
	case "celSelector":
		text = strings.Join(selector.CelSelector.CelExpressions, " && ")
	}
	return after(": ", text)
}

func taintStep(c *v1beta1.ExplainedCluster) string {
	if c.FilteredBy == "TaintToleration" {
		return c.Message
	}
	return "none that is not tolerated"
}

func spreadStep(p *v1beta1.Placement, c *v1beta1.ExplainedCluster) string {
	switch {
	case c.FilteredBy == "Spread":
		return c.Message
	case p != nil && len(p.Spec.SpreadPolicy.SpreadConstraints) == 0:
		return "the placement has no constraints"
	}
	return "breaks no constraint with DoNotSchedule"
}

func numberStep(p *v1beta1.Placement, c *v1beta1.ExplainedCluster) string {
	switch {
	case c.FilteredBy == "NumberOfClusters":
		return c.Message
	case p != nil && p.Spec.NumberOfClusters == nil:
		return "all clusters that pass are chosen"
	case p != nil:
		return fmt.Sprintf("among the %d that are requested", *p.Spec.NumberOfClusters)
	}
	return "among those that are requested"
}

// GroupOf returns the decision group of a chosen cluster.
func GroupOf(c *v1beta1.ExplainedCluster) string {
	index := int32(0)
	if c.DecisionGroupIndex != nil {
		index = *c.DecisionGroupIndex
	}
	text := strconv.Itoa(int(index))
	if c.DecisionGroupName != "" {
		text += " (" + c.DecisionGroupName + ")"
	}
	return text
}
