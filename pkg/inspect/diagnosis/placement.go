// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Findings about a placement and a cluster.
const (
	// PlacementMissing: there is no such placement.
	PlacementMissing ID = "PlacementMissing"
	// PlacementProblem: the placement chooses nothing new, for a reason that holds for all clusters.
	PlacementProblem ID = "PlacementProblem"
	// ClusterNotInSets: the cluster is in no set that the placement chooses from.
	ClusterNotInSets ID = "ClusterNotInSets"
	// PredicateMismatch: the cluster matches no predicate of the placement.
	PredicateMismatch ID = "PredicateMismatch"
	// TaintNotTolerated: the cluster has a taint that the placement does not tolerate.
	TaintNotTolerated ID = "TaintNotTolerated"
	// LeftOutBySpread: the cluster would break a spread constraint.
	LeftOutBySpread ID = "LeftOutBySpread"
	// NotNeeded: the placement wants fewer clusters, and others rank higher.
	NotNeeded ID = "NotNeeded"
	// NotInDecisions: the last decisions are kept, and the cluster is not in them.
	NotInDecisions ID = "NotInDecisions"
)

// PlacementFacts are the known facts about a placement and a cluster.
type PlacementFacts struct {
	Namespace, Name, Cluster string
	// Placement has the desired clusters. Users may read the explanation without permission to get it.
	Placement Read[*v1beta1.Placement]
	// Explanation is the hub's explanation for the one cluster. It is missing if the placement is, and ClusterMissing is true if the cluster is.
	Explanation    Read[*v1beta1.PlacementExplanation]
	ClusterMissing bool
	// Sets are the sets of the cluster that the user may see, and Bound the sets that are bound to the namespace.
	Sets, Bound Read[[]string]
}

// OfPlacement explains why a placement chooses a cluster, or does not.
func OfPlacement(facts PlacementFacts) Answer {
	p := &placementChain{PlacementFacts: facts}
	p.placement, _ = facts.Placement.Get()
	if e, ok := facts.Explanation.Get(); ok {
		p.explanation = e
		for i := range e.Status.Clusters {
			if e.Status.Clusters[i].ClusterName == facts.Cluster {
				p.explained = &e.Status.Clusters[i]
			}
		}
	}
	links := []link{{"placement", p.there}, {"cluster", p.clusterSeen}}
	if p.explained != nil {
		links = append(links, p.steps()...)
	}
	a := follow(links)
	subject := fmt.Sprintf("Placement %s of the namespace %s", facts.Name, facts.Namespace)
	if a.Finding != nil {
		a.Verdict = fmt.Sprintf("%s does not choose cluster %s", subject, facts.Cluster)
		if p.explained != nil && p.explained.Chosen {
			a.Verdict = fmt.Sprintf("%s chooses cluster %s, and nothing new", subject, facts.Cluster)
		}
		return a
	}
	return a.setVerdict(fmt.Sprintf("%s chooses cluster %s", subject, facts.Cluster))
}

type placementChain struct {
	PlacementFacts
	placement   *v1beta1.Placement
	explanation *v1beta1.PlacementExplanation
	explained   *v1beta1.ExplainedCluster
}

func (p *placementChain) object() string { return "placement/" + p.Namespace + "/" + p.Name }

func (p *placementChain) there() outcome {
	switch {
	case p.explanation != nil:
		return passed("there").without(p.Placement.Why())
	case p.Explanation.IsMissing():
		return broken("it does not exist", Finding{ID: PlacementMissing, Severity: Error, Object: p.object(),
			Cause: fmt.Sprintf("Placement %s does not exist in the namespace %s.", p.Name, p.Namespace), Turn: "you, or another user who may create placements",
			Fix: []string{"kubectl hub get placements -A"}})
	case p.ClusterMissing:
		return passed("there")
	}
	return unseen(p.Explanation.Why())
}

func (p *placementChain) clusterSeen() outcome {
	switch {
	case p.explained != nil:
		return passed("you see it")
	case p.ClusterMissing:
		return unseen("you may not see a cluster " + p.Cluster)
	case p.explanation != nil:
		return unseen("the hub does not explain cluster " + p.Cluster)
	}
	return unseen(p.Explanation.Why())
}

// steps returns a link for what holds for all clusters, and one for each step of the explanation.
func (p *placementChain) steps() []link {
	links := []link{{"all clusters", p.problem}}
	steps := PlacementSteps(p.placement, p.explained)
	for i := range steps {
		s := &steps[i]
		if !s.Fell && s.Name == "Decision" && !p.explained.Chosen {
			continue
		}
		links = append(links, link{s.Name, func() outcome {
			if s.Fell {
				return broken(s.Says, p.dropFinding(s.Says))
			}
			return passed("%s", s.Says)
		}})
	}
	return append(links, link{"chosen", p.chosen})
}

func (p *placementChain) problem() outcome {
	text := p.explanation.Status.Problem
	if text == "" {
		return passed("no problem that affects all of them")
	}
	f := Finding{ID: PlacementProblem, Severity: Error, Object: p.object(), Turn: "a user who may change the placement, or the objects that it refers to",
		Cause: "The placement cannot choose any new cluster: " + text, Fix: []string{ShellCommand("kubectl", "describe", "placement", p.Name, "-n", p.Namespace)}}
	if p.placement != nil {
		if c := meta.FindStatusCondition(p.placement.Status.Conditions, v1beta1.PlacementConditionSatisfied); c != nil {
			f.Since = since(c.LastTransitionTime)
		}
	}
	return broken(text, f)
}

func (p *placementChain) chosen() outcome {
	if p.explained.Chosen {
		return passed("yes")
	}
	return broken("no", Finding{ID: NotInDecisions, Severity: Error, Object: p.object(), Turn: "the hub's scheduler",
		Cause: "The hub does not report which step excluded the cluster: " + p.explained.Message + ".",
		Fix:   []string{ShellCommand("kubectl", "hub", "explain", "placement", p.Name, "-n", p.Namespace, "--cluster", p.Cluster)}})
}

// dropFinding returns the finding for the step that dropped the cluster, with how to change that.
func (p *placementChain) dropFinding(says string) Finding {
	f := Finding{Severity: Error, Object: p.object(), Cause: p.explained.Message + ".", Turn: "you, or another user who may change the placement " + p.Name}
	if says != p.explained.Message {
		f.Cause = p.explained.Message + ": " + says + "."
	}
	edit := ShellCommand("kubectl", "edit", "placement", p.Name, "-n", p.Namespace)
	f.Fix = []string{edit}
	switch p.explained.FilteredBy {
	case "ClusterSet":
		f.ID = ClusterNotInSets
		p.notInSets(&f)
	case "Deletion":
		f.ID, f.Turn, f.Fix = ClusterDeleting, "the hub", []string{ShellCommand("kubectl", "hub", "why", "cluster", p.Cluster)}
	case "Predicate":
		f.ID = PredicateMismatch
		if changes := p.requiredLabels(); len(changes) > 0 {
			f.Turn = "a user who may write the labels of the cluster, or one who may change the placement"
			f.Fix = []string{ShellCommand(slices.Concat([]string{"kubectl", "hub", "label", p.Cluster}, changes, []string{"--overwrite"})...)}
		}
	case "TaintToleration":
		f.ID = TaintNotTolerated
		f.Fix = []string{ShellCommand("kubectl", "get", "managedcluster", p.Cluster, "-o", "jsonpath={.spec.taints}"), edit}
		if strings.Contains(p.explained.Message, registration.TaintUnreachable) || strings.Contains(p.explained.Message, registration.TaintUnavailable) {
			f.Turn = "an admin of the cluster: the hub added the taint, and removes it when the cluster is available again"
			f.Fix = []string{ShellCommand("kubectl", "hub", "why", "cluster", p.Cluster)}
		}
	case "Spread":
		f.ID = LeftOutBySpread
	case "NumberOfClusters":
		f.ID = NotNeeded
		if p.placement != nil && p.placement.Spec.NumberOfClusters != nil {
			more := fmt.Sprintf(`{"spec":{"numberOfClusters":%d}}`, *p.placement.Spec.NumberOfClusters+1)
			f.Fix = []string{ShellCommand("kubectl", "patch", "placement", p.Name, "-n", p.Namespace, "--type=merge", "-p", more),
				ShellCommand("kubectl", "hub", "explain", "placement", p.Name, "-n", p.Namespace)}
		}
	default:
		f.ID = NotInDecisions
	}
	return f
}

// notInSets sets in the finding whether a binding is missing, or the cluster is in no set that is bound.
func (p *placementChain) notInSets(f *Finding) {
	f.Fix = []string{ShellCommand("kubectl", "hub", "why", "member", p.Cluster) + " --set <SET>"}
	sets, seesSets := p.Sets.Get()
	bound, seesBound := p.Bound.Get()
	if !seesSets || !seesBound {
		return
	}
	f.Turn = "a user who may bind a set to the namespace " + p.Namespace + ", or put the cluster into one that is bound"
	f.Cause += fmt.Sprintf(" Bound to the namespace: %s. The cluster is in: %s.", orNoSet(bound), orNoSet(sets))
	if p.placement != nil && len(p.placement.Spec.ClusterSets) > 0 {
		f.Cause += " The placement names: " + shortened(p.placement.Spec.ClusterSets) + "."
	}
	f.Fix = nil
	for _, set := range sets {
		if set != "global" && !slices.Contains(bound, set) {
			f.Fix = append(f.Fix, ShellCommand("kubectl", "hub", "bind", set, "-n", p.Namespace))
			break
		}
	}
	for _, set := range bound {
		if !slices.Contains(sets, set) {
			f.Fix = append(f.Fix, ShellCommand("kubectl", "hub", "why", "member", p.Cluster, "--set", set))
			break
		}
	}
	if len(f.Fix) == 0 {
		f.Fix = []string{ShellCommand("kubectl", "edit", "placement", p.Name, "-n", p.Namespace)}
	}
}

func orNoSet(sets []string) string {
	if len(sets) == 0 {
		return "no set that you may see"
	}
	return shortened(sets)
}

// requiredLabels returns the labels by which the cluster would match the first predicate of which only the labelSelector does not match.
func (p *placementChain) requiredLabels() []string {
	if p.placement == nil {
		return nil
	}
	for _, m := range p.explained.Mismatches {
		if m.Selector != "labelSelector" || int(m.Predicate) >= len(p.placement.Spec.Predicates) {
			continue
		}
		selects, err := metav1.LabelSelectorAsSelector(&p.placement.Spec.Predicates[m.Predicate].RequiredClusterSelector.LabelSelector)
		if err != nil {
			continue
		}
		all, _ := selects.Requirements()
		if slices.ContainsFunc(all, func(r labels.Requirement) bool { return excludes(&r) }) {
			continue // the explanation does not have the labels of the cluster
		}
		if changes, clear := Changes(all, nil); clear {
			return changes
		}
	}
	return nil
}
