// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

// explainCluster shows the steps that a cluster went through, down to the one that it fell out by. The placement may be nil.
func explainCluster(out io.Writer, p *v1beta1.Placement, e *v1beta1.PlacementExplanation) error {
	l, c := &lines{out: out}, &e.Status.Clusters[0]
	problems(l, e)
	if c.Chosen {
		l.printf("Cluster %s is chosen.", c.ClusterName)
	} else {
		l.printf("Cluster %s is not chosen: %s.", c.ClusterName, sentence(c.Message))
	}
	if c.FilteredBy == "" && !c.Chosen || e.Status.Problem != "" && len(c.Scores) == 0 && c.FilteredBy == "" {
		return l.err // the problem says why, and nothing else was looked at
	}
	l.printf("")
	for _, step := range stepsOf(p, c) {
		mark := "passed"
		switch {
		case step.fell:
			mark = "FELL OUT"
		case step.only:
			mark = "-"
		}
		l.printf("  %-26s  %-8s  %s", step.name, mark, step.says)
		if step.fell {
			return l.err
		}
	}
	return l.err
}

// step is one that a cluster goes through. Only is one at which no cluster falls out.
type step struct {
	name, says string
	fell, only bool
}

func stepsOf(p *v1beta1.Placement, c *v1beta1.ExplainedCluster) []step {
	fell := func(by string) bool { return c.FilteredBy == by }
	all := []step{{name: "Sets", says: setStep(p, c), fell: fell("ClusterSet")}}
	if fell("Deletion") {
		return append(all, step{name: "Deletion", says: "the cluster is being deleted", fell: true})
	}
	all = append(all, step{name: "Predicates", says: predicateStep(p, c), fell: fell("Predicate")},
		step{name: "Taints", says: taintStep(c), fell: fell("TaintToleration")})
	for i := range c.Scores {
		s := &c.Scores[i]
		says := "not shown: it compares the cluster with others that you may not see"
		if s.Score != nil {
			says = fmt.Sprintf("%d × weight %d = %d", *s.Score, s.Weight, int64(*s.Score)*int64(s.Weight))
		}
		all = append(all, step{name: s.Name, says: says, only: true})
	}
	if c.TotalScore != nil && c.Rank != nil {
		all = append(all, step{name: "Total", says: fmt.Sprintf("%d: rank %d of the clusters that passed and that you may see", *c.TotalScore, *c.Rank), only: true})
	}
	all = append(all, step{name: "Spread", says: spreadStep(p, c), fell: fell("Spread")},
		step{name: "Number", says: numberStep(p, c), fell: fell("NumberOfClusters")})
	return append(all, step{name: "Decision", says: fmt.Sprintf("group %s, PlacementDecision %s", groupOf(c), c.DecisionName), only: true})
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
			parts[i] += wanted(p, m)
		}
	}
	return strings.Join(parts, "; ")
}

// wanted is the selector of a predicate, in short. The placement may have changed since the explanation.
func wanted(p *v1beta1.Placement, m v1beta1.PredicateMismatch) string {
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
		return "all clusters that pass are wanted"
	case p != nil:
		return fmt.Sprintf("among the %d that are wanted", *p.Spec.NumberOfClusters)
	}
	return "among those that are wanted"
}

// sentence is a message with a small first letter, as it follows a colon.
func sentence(message string) string {
	if message == "" {
		return message
	}
	return strings.ToLower(message[:1]) + message[1:]
}
