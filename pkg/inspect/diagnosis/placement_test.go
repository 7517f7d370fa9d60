// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// placementFacts returns facts of a cluster that a placement chooses or, if by is set, drops.
func placementFacts(by, message string) (PlacementFacts, *v1beta1.PlacementExplanation) {
	p := &v1beta1.Placement{}
	p.Spec.NumberOfClusters = new(int32(2))
	p.Spec.Predicates = make([]v1beta1.ClusterPredicate, 1)
	p.Spec.Predicates[0].RequiredClusterSelector.LabelSelector = metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	e := &v1beta1.PlacementExplanation{}
	c := v1beta1.ExplainedCluster{ClusterName: "c1", Chosen: by == "", FilteredBy: by, Message: message, DecisionName: "web-decision-1"}
	if by == "Predicate" {
		c.Mismatches = []v1beta1.PredicateMismatch{{Predicate: 0, Selector: "labelSelector"}}
	}
	e.Status.Clusters = []v1beta1.ExplainedCluster{c}
	return PlacementFacts{Namespace: "dev", Name: "web", Cluster: "c1", Placement: Found(p), Explanation: Found(e), Sets: Found([]string{"eu", "global"}), Bound: Found([]string{"us"})}, e
}

func TestOfPlacement(t *testing.T) {
	for name, test := range map[string]struct {
		by, message string
		id          ID
		step        string
		says        []string
	}{
		"chosen":          {message: "The cluster is chosen"},
		"in no set":       {"ClusterSet", "In none", ClusterNotInSets, "Sets", []string{"kubectl hub bind eu -n dev", "kubectl hub why member c1 --set us"}},
		"being deleted":   {"Deletion", "Deleted", ClusterDeleting, "Deletion", nil},
		"no predicate":    {"Predicate", "No match", PredicateMismatch, "Predicates", []string{"env=prod", "kubectl hub label c1 env=prod --overwrite"}},
		"a taint":         {"TaintToleration", "The taint k=v:NoSelect", TaintNotTolerated, "Taints", []string{"kubectl edit placement web -n dev"}},
		"a taint of ours": {"TaintToleration", "The taint " + registration.TaintUnreachable, TaintNotTolerated, "Taints", []string{"kubectl hub why cluster c1", "the hub added the taint"}},
		"spread":          {"Spread", "Too many in eu", LeftOutBySpread, "Spread", nil},
		"number":          {"NumberOfClusters", "2 are wanted", NotNeeded, "Number", []string{`'{"spec":{"numberOfClusters":3}}'`}},
	} {
		t.Run(name, func(t *testing.T) {
			facts, _ := placementFacts(test.by, test.message)
			a := OfPlacement(facts)
			checkAnswer(t, a, test.id, test.step, test.says...)
			if strings.Contains(a.Verdict, "does not choose") != (test.id != "") {
				t.Errorf("the verdict is %q", a.Verdict)
			}
		})
	}
}

func TestOfPlacement_NotFound(t *testing.T) {
	facts, e := placementFacts("", "The cluster is chosen")
	e.Status.Problem = "The placement is paused"
	checkAnswer(t, OfPlacement(facts), PlacementProblem, "all clusters", "paused", "and nothing new")

	facts, e = placementFacts("", "The last decisions are kept")
	e.Status.Clusters[0].Chosen = false
	checkAnswer(t, OfPlacement(facts), NotInDecisions, "chosen", "are kept")

	facts, _ = placementFacts("", "")
	facts.Explanation = Missing[*v1beta1.PlacementExplanation]()
	checkAnswer(t, OfPlacement(facts), PlacementMissing, "placement")

	for _, change := range []func(*PlacementFacts){
		func(f *PlacementFacts) { f.Explanation = Hidden[*v1beta1.PlacementExplanation]("you may not") },
		func(f *PlacementFacts) {
			f.Explanation, f.ClusterMissing = Read[*v1beta1.PlacementExplanation]{}, true
		},
		func(f *PlacementFacts) { f.Cluster = "c2" },
		func(f *PlacementFacts) { *f = PlacementFacts{} },
	} {
		facts, _ = placementFacts("", "")
		change(&facts)
		if a := OfPlacement(facts); !a.IsBlind() || len(a.Unseen) == 0 {
			t.Errorf("%+v", a)
		}
	}
	// The explanation suffices without the placement.
	facts, _ = placementFacts("Predicate", "No match")
	facts.Placement, facts.Sets = Hidden[*v1beta1.Placement]("no placement"), Hidden[[]string]("no sets")
	checkAnswer(t, OfPlacement(facts), PredicateMismatch, "Predicates", "kubectl edit placement")
}
