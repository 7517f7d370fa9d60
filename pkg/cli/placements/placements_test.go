// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placements_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
)

func TestGetPlacements(t *testing.T) {
	_, config := clitest.NewPlaced(t)
	for _, test := range []struct{ args, want string }{
		{"get placements -n dev", `NAME STATUS REASON COUNT SELECTED CLUSTERS
none <unknown> <none> 0 <none>
web True AllDecisionsScheduled 3 c1, c2, c3`},
		{"get placement web -n dev -o wide", `NAME STATUS REASON CLUSTER GROUP SCORE AVAILABLE
web True AllDecisionsScheduled c1 0 (canary) 7 Unknown
web True AllDecisionsScheduled c2 0 (canary) 7 <unknown>
web True AllDecisionsScheduled c3 1 7 <unknown>`},
		{"get placements -A", `NAMESPACE NAME STATUS REASON COUNT SELECTED CLUSTERS
dev none <unknown> <none> 0 <none>
dev web True AllDecisionsScheduled 3 c1, c2, c3
ops db False NoManagedClusterMatched 0 <none>`},
		{"get placements -n ops -o wide", `NAME STATUS REASON CLUSTER GROUP SCORE AVAILABLE
db False NoManagedClusterMatched <none> - - -`},
		{"get placements -n ops -o name", "placement.cluster.open-cluster-management.io/db"},
	} {
		if got := clitest.Squeeze(clitest.MustRun(t, config, strings.Fields(test.args)...)); got != test.want {
			t.Errorf("%s prints\n%s\nwant\n%s", test.args, got, test.want)
		}
	}
	stdout, stderr, err := clitest.Run(t, config, "get", "placements", "-n", "empty")
	if err != nil || stdout != "" || stderr != "No placements found.\n" {
		t.Errorf("%v, %q, %q", err, stdout, stderr)
	}
	if _, _, err := clitest.Run(t, config, "get", "placements", "gone", "-n", "dev"); err == nil {
		t.Error("a placement that is not there is shown")
	}
}

// TestGetPlacements_Misconfigured verifies that a misconfigured placement keeps its clusters, and that the output shows the reason.
func TestGetPlacements_Misconfigured(t *testing.T) {
	p := &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "dev", Name: "web"}}
	p.Status.Conditions = []metav1.Condition{{Type: v1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionTrue, Reason: "Misconfigured"},
		{Type: v1beta1.PlacementConditionSatisfied, Status: metav1.ConditionFalse, Reason: "NotAllDecisionsScheduled"}}
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": clitest.NewServer(t, p)})
	clitest.Says(t, clitest.Squeeze(clitest.MustRun(t, config, "get", "placements", "-n", "dev")), "web False Misconfigured 0")
}

func TestCreatePlacement(t *testing.T) {
	s := clitest.NewServer(t, &v1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "dev", Name: "eu"},
		Spec: v1beta2.ManagedClusterSetBindingSpec{ClusterSet: "eu"}})
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	stdout, stderr, err := clitest.Run(t, config, "create", "placement", "web", "-n", "dev", "--clustersets", "eu,us", "--count", "0",
		"--label-selectors", "env=prod,tier in (a,b)", "--predicate", "env=test,x notin (y)", "--cel", "a == b", "--cel", "c[0, 1]",
		"--prioritizers", "BuiltIn:Steady:3,AddOn:load:free:-1")
	if err != nil || stdout != "placement/web created\n" || !strings.Contains(stderr, "not bound to the set us:") || strings.Contains(stderr, "set eu:") {
		t.Fatalf("%v, %q, %q", err, stdout, stderr)
	}
	p := &v1beta1.Placement{}
	if err := json.Unmarshal([]byte(s.Bodies["POST "+clitest.PlacementsPath]), p); err != nil {
		t.Fatal(err)
	}
	var selectors []string
	for i := range p.Spec.Predicates {
		required := &p.Spec.Predicates[i].RequiredClusterSelector
		selectors = append(selectors, metav1.FormatLabelSelector(&required.LabelSelector))
		if got := strings.Join(required.CelSelector.CelExpressions, "|"); got != "a == b|c[0, 1]" {
			t.Errorf("predicate %d has the expressions %s", i, got)
		}
	}
	if got := strings.Join(selectors, " | "); got != "env=prod | tier in (a,b) | env=test,x notin (y)" {
		t.Errorf("the predicates are %s", got)
	}
	if p.Spec.NumberOfClusters == nil || *p.Spec.NumberOfClusters != 0 || len(p.Spec.ClusterSets) != 2 {
		t.Errorf("got %+v", p.Spec)
	}
	if c := p.Spec.PrioritizerPolicy.Configurations; len(c) != 2 || c[0].ScoreCoordinate.BuiltIn != "Steady" || *c[0].Weight != 3 ||
		c[1].ScoreCoordinate.AddOn.ScoreName != "free" || *c[1].Weight != -1 {
		t.Errorf("got %+v", c)
	}

	// An existing placement is only replaced with --overwrite.
	if _, _, err := clitest.Run(t, config, "create", "placement", "web", "-n", "dev"); err == nil || !strings.Contains(err.Error(), "--overwrite") {
		t.Errorf("a second one: %v", err)
	}
	if got := clitest.MustRun(t, config, "create", "placement", "web", "-n", "dev", "--overwrite"); got != "placement/web configured\n" {
		t.Errorf("it prints %q", got)
	}
	if got := s.Get(clitest.PlacementsPath + "/web"); strings.Contains(fmt.Sprint(got.Object["spec"]), "predicates") {
		t.Errorf("the old spec is there: %v", got.Object["spec"])
	}
}

func TestCreatePlacement_DryRun(t *testing.T) {
	s := clitest.NewServer(t, &v1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "dev", Name: "eu"}})
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	got := clitest.MustRun(t, config, "create", "placement", "web", "-n", "dev", "--count", "2", "--dry-run=client", "-o", "yaml")
	clitest.Says(t, got, "kind: Placement", "numberOfClusters: 2", "namespace: dev")
	if len(s.Asked) > 0 {
		t.Errorf("it asks %v", s.Asked)
	}
	if got := clitest.MustRun(t, config, "create", "placement", "web", "-n", "dev", "--dry-run"); got != "placement/web created (dry run)\n" {
		t.Errorf("it prints %q", got)
	}
	if got := clitest.MustRun(t, config, "create", "placement", "web", "-n", "dev", "--dry-run=server", "-o", "name"); got != "placement.cluster.open-cluster-management.io/web\n" {
		t.Errorf("it prints %q", got)
	}
	s.WantAsked("GET /apis/cluster.open-cluster-management.io/v1beta2/namespaces/dev/managedclustersetbindings", "POST "+clitest.PlacementsPath+"?dryRun=All")
}

func TestCreatePlacement_InvalidArguments(t *testing.T) {
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": clitest.NewServer(t)})
	for _, flag := range []string{"--predicate=", "--predicate=a b", "--label-selectors=a=b,", "--prioritizers=Steady", "--prioritizers=BuiltIn:Steady",
		"--prioritizers=BuiltIn:Steady:x", "--prioritizers=AddOn:a:1", "--dry-run=all", "--count=x"} {
		if _, _, err := clitest.Run(t, config, "create", "placement", "web", "-n", "dev", flag); err == nil {
			t.Errorf("%s is taken", flag)
		}
	}
}
