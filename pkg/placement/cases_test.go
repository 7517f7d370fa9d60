// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"encoding/csv"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
)

// notHere are rows about the debug server, which this package does not have.
var notHere = map[string]bool{"debug": true}

// TestCases runs a test for every row of the table.
func TestCases(t *testing.T) {
	file, err := os.Open("testdata/placement-cases.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader := csv.NewReader(file)
	reader.Comma, reader.Comment, reader.LazyQuotes = '\t', '#', true
	rows, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]func(*testing.T){}
	for _, some := range []map[string]func(*testing.T){eligibleCases, filterCases, scoreCases, decisionCases, triggerCases} {
		for id, test := range some {
			tests[id] = test
		}
	}
	for _, row := range rows[1:] {
		id, topic := row[0], row[1]
		test := tests[id]
		delete(tests, id)
		switch {
		case notHere[topic]:
		case test == nil:
			t.Errorf("no test for %s: %s → %s → %s", id, row[2], row[3], row[4])
		default:
			t.Run(id, func(t *testing.T) {
				t.Logf("%s\n%s\n→ %s", row[2], row[3], row[4])
				test(t)
			})
		}
	}
	for id := range tests {
		t.Errorf("the table has no row %s", id)
	}
}

var eligibleCases = map[string]func(*testing.T){
	"P001": func(t *testing.T) {
		w := newWorld(t, managed("c1"))
		w.bindings = nil
		w.expect()
		w.emptyDecision()
		w.satisfied("False NoManagedClusterSetBindings", "No valid ManagedClusterSetBindings found in placement namespace")
	},
	"P002": func(t *testing.T) {
		w := newWorld(t, managed("c1"))
		w.fleet.DeleteSet("s1")
		w.expect()
		w.satisfied("False NoManagedClusterSetBindings", "")
	},
	"P003": func(t *testing.T) {
		w := newWorld(t, managed("c1"))
		w.spec().ClusterSets = []string{"s2"}
		w.expect()
		w.satisfied("False NoIntersection", "None of ManagedClusterSets [s2] is bound to placement namespace")
	},
	"P004": func(t *testing.T) {
		w := newWorld(t)
		w.expect()
		w.emptyDecision()
		w.satisfied("False AllManagedClusterSetsEmpty", "All ManagedClusterSets [s1] have no member ManagedCluster")
	},
	"P005": func(t *testing.T) {
		w := twoSets(t)
		w.spec().NumberOfClusters = number(10)
		w.expect("c1", "c2", "c3", "c4", "c5")
		w.spec().ClusterSets = []string{"s1"}
		w.expect("c1", "c2")
	},
	"P006": func(t *testing.T) {
		w := newWorld(t, managed("c1"), managed("c2"), managed("c3"), managed("c4"), managed("c5"))
		w.expect("c1", "c2", "c3", "c4", "c5")
		terminating := managed("c3")
		terminating.DeletionTimestamp = &metav1.Time{Time: start}
		w.add(terminating)
		w.expect("c1", "c2", "c4", "c5")
		if len(w.last.Steps) != 1 || w.last.Steps[0].Action != run.Update || w.placement.Status.DecisionGroups[0].ClustersCount != 4 {
			t.Errorf("steps %+v, status %+v", w.last.Steps, w.placement.Status)
		}
	},
	"P007": func(t *testing.T) {
		w := newWorld(t, managed("c1", "label:vendor=openShift"))
		w.fleet.SetSet(labelSet("s2", &metav1.LabelSelector{MatchLabels: map[string]string{"vendor": "openShift"}}))
		w.bindings = []string{"s2"}
		w.spec().NumberOfClusters = number(2)
		w.expect("c1")
		w.add(managed("c2", "label:vendor=openShift"))
		w.expect("c1", "c2")
		w.satisfied("True AllDecisionsScheduled", "All cluster decisions scheduled")
		w.fleet.DeleteCluster("c1")
		w.fleet.DeleteCluster("c2")
		w.expect()
		w.emptyDecision()
	},
	"P008": func(t *testing.T) {
		w := newWorld(t)
		w.fleet.SetSet(labelSet("global", &metav1.LabelSelector{}))
		w.bindings = []string{"global"}
		bare := managed("c1")
		bare.Labels = nil
		w.add(bare)
		w.expect("c1")
		w.fleet.DeleteCluster("c1")
		w.expect()
	},
	"P009": func(t *testing.T) {
		w := newWorld(t, managed("c1"))
		unknown := exclusiveSet("s1")
		unknown.Spec.ClusterSelector.SelectorType = "Moon"
		w.fleet.SetSet(unknown)
		w.schedule()
		if len(w.decisions) != 0 {
			t.Errorf("decisions %v", w.decisions)
		}
		w.satisfied("False NotAllDecisionsScheduled", "the members of the ManagedClusterSet s1 are not known")
	},
	"P010": func(t *testing.T) { newWorld(t, managed("c1")).expect("c1") },
	"P011": func(t *testing.T) {
		w := twoSets(t)
		w.bindings = []string{"s1"}
		w.expect("c1", "c2")
		w.bindings = []string{"s1", "s2"}
		w.expect("c1", "c2", "c3", "c4", "c5")
	},
	"P012": func(t *testing.T) {
		w := twoSets(t)
		w.expect("c1", "c2", "c3", "c4", "c5")
		w.fleet.DeleteSet("s2")
		w.expect("c1", "c2")
		w.set("s2")
		w.expect("c1", "c2", "c3", "c4", "c5")
	},
	"P013": func(t *testing.T) {
		w := twoSets(t)
		w.expect("c1", "c2", "c3", "c4", "c5")
		w.bindings = []string{"s1"}
		w.expect("c1", "c2")
		w.bindings = []string{"s2", "s1"}
		w.expect("c1", "c2", "c3", "c4", "c5")
	},
	"P014": func(t *testing.T) {
		w := newWorld(t, managed("c1"))
		w.spec().NumberOfClusters = number(3)
		w.expect("c1")
		w.satisfied("False NotAllDecisionsScheduled", "2 cluster decisions unscheduled")
	},
	"P015": func(t *testing.T) {
		w := newWorld(t, many(5)...)
		w.spec().NumberOfClusters = number(10)
		w.schedule()
		w.spec().NumberOfClusters = number(4)
		if got := w.schedule(); len(got) != 4 {
			t.Error(got)
		}
		w.satisfied("True AllDecisionsScheduled", "")
	},
	"P016": func(t *testing.T) {
		w := newWorld(t, many(10)...)
		w.spec().NumberOfClusters = number(5)
		w.schedule()
		w.spec().NumberOfClusters = number(8)
		if got := w.schedule(); len(got) != 8 {
			t.Error(got)
		}
		w.satisfied("True AllDecisionsScheduled", "")
	},
	"P017": func(t *testing.T) {
		w := newWorld(t, many(5)...)
		w.spec().NumberOfClusters = number(10)
		w.schedule()
		w.satisfied("False NotAllDecisionsScheduled", "5 cluster decisions unscheduled")
		w.add(many(10)...)
		if got := w.schedule(); len(got) != 10 {
			t.Error(got)
		}
		w.satisfied("True AllDecisionsScheduled", "")
	},
	"P071": func(t *testing.T) {
		w := newWorld(t, managed("c1"))
		w.placement.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}
		w.schedule()
		if !w.last.Disabled || len(w.last.Steps) > 0 {
			t.Errorf("%+v", w.last)
		}
	},
}

// twoSets returns a world with c1 and c2 in s1, and c3, c4 and c5 in s2, both bound.
func twoSets(t *testing.T) *world {
	w := newWorld(t, managed("c1"), managed("c2"))
	w.set("s2")
	for _, name := range []string{"c3", "c4", "c5"} {
		w.add(managed(name, "label:cluster.open-cluster-management.io/clusterset=s2"))
	}
	w.bindings = []string{"s1", "s2"}
	return w
}
