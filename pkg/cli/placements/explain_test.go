// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placements_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
)

func chosen(name string, group, rank int32, scores ...v1beta1.ExplainedScore) v1beta1.ExplainedCluster {
	return v1beta1.ExplainedCluster{ClusterName: name, ClusterSets: []string{"eu"}, Chosen: true, Message: "The cluster is chosen", Scores: scores,
		TotalScore: new(int64(100)), Rank: &rank, DecisionGroupIndex: &group, DecisionName: "web-decision-1"}
}

func TestExplain_ListsChosenAndCountsOthers(t *testing.T) {
	many := []v1beta1.ExplainedCluster{
		chosen("b", 1, 2), chosen("a", 0, 3, v1beta1.ExplainedScore{Name: "Steady", Weight: 3, Score: new(int32(100))}, v1beta1.ExplainedScore{Name: "Balance", Weight: 1}),
		clitest.Fell("t", "TaintToleration", "The taint k=v:NoSelect of the cluster is not tolerated"),
	}
	for i := range 12 {
		many = append(many, clitest.Fell(fmt.Sprint("n", i), "NumberOfClusters", "2 clusters are wanted, and others come before this one"))
	}
	s, config := clitest.NewExplained(t, clitest.Explained(many...))
	want := `Chosen: 2 clusters
CLUSTER GROUP RANK TOTAL SCORES
a 0 3 100 Steady=100×3 Balance=?
b 1 2 100 <none>
A score with a question mark compares the cluster with others that you may not see.

Not needed, since others come before: 12 clusters
2 clusters are wanted, and others come before this one: n0, n1, n2, n3, n4, n5, n6, n7, n8, n9 and 2 more

With a taint that is not tolerated: 1 cluster
The taint k=v:NoSelect of the cluster is not tolerated: t`
	if got := clitest.Squeeze(clitest.MustRun(t, config, "explain", "placement", "web", "-n", "dev")); got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
	s.WantAsked("GET "+clitest.ExplainPath+"?limit=5000", "GET "+clitest.PlacementsPath+"/web")
	for _, format := range []string{"json", "yaml"} {
		clitest.Says(t, clitest.MustRun(t, config, "explain", "placement", "web", "-n", "dev", "-o", format), "PlacementExplanation", "filteredBy", "n11")
	}
}

func TestExplain_ReadsAllPages(t *testing.T) {
	s, config := clitest.NewExplained(t, nil)
	pages := []*v1beta1.PlacementExplanation{clitest.Explained(chosen("a", 0, 1)), clitest.Explained(chosen("b", 0, 2))}
	pages[0].Status.Continue = "a"
	s.On["GET "+clitest.ExplainPath] = func(w http.ResponseWriter, _ []byte) bool {
		page := pages[0]
		pages = pages[1:]
		clitest.WriteJSON(w, http.StatusOK, page)
		return true
	}
	var all v1beta1.PlacementExplanation
	if err := json.Unmarshal([]byte(clitest.MustRun(t, config, "explain", "placement", "web", "-n", "dev", "-o", "json")), &all); err != nil ||
		len(all.Status.Clusters) != 2 || all.Status.Continue != "" {
		t.Errorf("%v, %+v", err, all)
	}
	s.WantAsked("GET "+clitest.ExplainPath+"?limit=5000", "GET "+clitest.ExplainPath+"?continue=a&limit=5000")
}

func TestExplain_StepsOfCluster(t *testing.T) {
	took := chosen("a", 0, 1, v1beta1.ExplainedScore{Name: "Steady", Weight: -2, Score: new(int32(50))}, v1beta1.ExplainedScore{Name: "Balance", Weight: 1})
	mismatch := clitest.Fell("a", "Predicate", "The cluster does not match the labelSelector of predicate 0")
	mismatch.Mismatches = []v1beta1.PredicateMismatch{{Predicate: 0, Selector: "labelSelector"}, {Predicate: 7, Selector: "celSelector"}}
	elsewhere := clitest.Fell("a", "ClusterSet", "The cluster is in none of the sets that the placement chooses from")
	for _, test := range []struct {
		cluster v1beta1.ExplainedCluster
		want    string
	}{
		{took, `Cluster a is chosen.

Sets passed in eu, of those that are bound to the namespace
Predicates passed matches one
Taints passed none that is not tolerated
Steady - 50 × weight -2 = -100
Balance - not shown: it compares the cluster with others that you may not see
Total - 100: rank 1 of the clusters that passed and that you may see
Spread passed the placement has no constraints
Number passed among the 2 that are requested
Decision - group 0, PlacementDecision web-decision-1`},
		{mismatch, `Cluster a is not chosen: the cluster does not match the labelSelector of predicate 0.

Sets passed in eu, of those that are bound to the namespace
Predicates FELL OUT predicate 0: its labelSelector does not match: env=prod; predicate 7: its celSelector does not match`},
		{elsewhere, `Cluster a is not chosen: the cluster is in none of the sets that the placement chooses from.

Sets FELL OUT in none of those that are bound to the namespace`},
	} {
		s, config := clitest.NewExplained(t, clitest.Explained(test.cluster))
		if got := clitest.Squeeze(clitest.MustRun(t, config, "explain", "placement", "web", "-n", "dev", "--cluster", "a")); got != test.want {
			t.Errorf("it prints\n%s\nwant\n%s", got, test.want)
		}
		s.WantAsked("GET "+clitest.ExplainPath+"?cluster=a", "GET "+clitest.PlacementsPath+"/web")
	}
}

// TestExplain_NotFound verifies that the error names the missing object, the placement or the cluster.
func TestExplain_NotFound(t *testing.T) {
	s, config := clitest.NewExplained(t, clitest.Explained())
	for resource, want := range map[string]string{
		"placements": "there is no placement web in the namespace dev", "managedclusters": "there is no cluster c9 that you may see",
	} {
		s.Refuse("GET "+clitest.ExplainPath, apierrors.NewNotFound(schema.GroupResource{Resource: resource}, "x"))
		if _, _, err := clitest.Run(t, config, "explain", "placement", "web", "-n", "dev", "--cluster", "c9"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestExplain_WithoutPlacement verifies that a user who may not get the placement is shown the explanation.
func TestExplain_WithoutPlacement(t *testing.T) {
	e := clitest.Explained(clitest.Fell("a", "Predicate", "The cluster matches nothing \x1b[2J"))
	e.Status.Partial, e.Status.Problem = true, "The placement is being deleted"
	s, config := clitest.NewExplained(t, e)
	s.Refuse("GET "+clitest.PlacementsPath+"/web", clitest.Forbidden("placements", "get"))
	got := clitest.MustRun(t, config, "explain", "placement", "web", "-n", "dev")
	clitest.Says(t, got, "The placement is being deleted", "Your rights do not cover all sets", "No cluster is chosen", "Not matched by a predicate: 1 cluster")
	if strings.Contains(got, "\x1b") {
		t.Errorf("it moves the cursor: %q", got)
	}
	clitest.Says(t, clitest.MustRun(t, config, "explain", "placement", "web", "-n", "dev", "--cluster", "a"), "Predicates", "FELL OUT")
}
