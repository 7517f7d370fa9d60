// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterhub/clusterhub/pkg/admission/objectsize"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func decision(name string, index int, group string, clusters ...string) *clusterv1beta1.PlacementDecision {
	d := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		clusterv1beta1.PlacementLabel: "p", clusterv1beta1.DecisionGroupIndexLabel: strconv.Itoa(index), clusterv1beta1.DecisionGroupNameLabel: group},
		OwnerReferences: run.Owners(&clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}})}}
	d.Status.Decisions = []clusterv1beta1.ClusterDecision{}
	for _, c := range clusters {
		d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: c})
	}
	return d
}

// groupsOf returns a strategy that divides by the label group, in this order.
func groupsOf(length intstr.IntOrString, names ...string) clusterv1beta1.DecisionStrategy {
	s := clusterv1beta1.DecisionStrategy{}
	s.GroupStrategy.ClustersPerDecisionGroup = length
	for _, name := range names {
		s.GroupStrategy.DecisionGroups = append(s.GroupStrategy.DecisionGroups, clusterv1beta1.DecisionGroup{GroupName: name,
			ClusterSelector: clusterv1beta1.GroupClusterSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"group": name}}}})
	}
	return s
}

// expectGroups compares name, decisions and count of each group, and the labels of the decisions.
func (w *world) expectGroups(want ...string) {
	w.t.Helper()
	var got []string
	for i, g := range w.placement.Status.DecisionGroups {
		got = append(got, fmt.Sprintf("%d %s %v %d", g.DecisionGroupIndex, g.DecisionGroupName, g.Decisions, g.ClustersCount))
		for _, name := range g.Decisions {
			at := slices.IndexFunc(w.decisions, func(d *clusterv1beta1.PlacementDecision) bool { return d.Name == name })
			labels := w.decisions[at].Labels
			if labels[clusterv1beta1.DecisionGroupIndexLabel] != strconv.Itoa(i) || labels[clusterv1beta1.DecisionGroupNameLabel] != g.DecisionGroupName ||
				labels[clusterv1beta1.PlacementLabel] != "p" || len(labels) != 3 {
				w.t.Fatalf("%s has the labels %v", name, labels)
			}
		}
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("groups %q, want %q", got, want)
	}
}

var decisionCases = map[string]func(*testing.T){
	"P063": func(t *testing.T) {
		w := newWorld(t, managed("c1"), managed("c2", "label:group=canary"), managed("c3"), managed("c4", "label:group=canary"), managed("c5"))
		w.spec().DecisionStrategy = groupsOf(intstr.FromInt32(2), "canary")
		w.schedule()
		w.expectGroups("0 canary [p-decision-1] 2", "1  [p-decision-2] 2", "2  [p-decision-3] 1")
	},
	"P064": func(t *testing.T) {
		w := newWorld(t, managed("c1"), managed("c2", "label:group=canary"), managed("c3"), managed("c4", "label:group=canary"))
		w.spec().DecisionStrategy = groupsOf(intstr.FromInt32(1), "canary")
		w.schedule()
		w.expectGroups("0 canary [p-decision-1] 1", "1 canary [p-decision-2] 1", "2  [p-decision-3] 1", "3  [p-decision-4] 1")
	},
	"P065": func(t *testing.T) {
		w := newWorld(t, managed("c1", "label:group=group1"), managed("c2", "label:group=group2"), managed("c3", "label:group=group1"))
		w.spec().DecisionStrategy = groupsOf(intstr.FromString("100%"), "group1", "group2", "nobody")
		w.schedule()
		w.expectGroups("0 group1 [p-decision-1] 2", "1 group2 [p-decision-2] 1")
	},
	"P066": func(t *testing.T) {
		w := three(t)
		w.spec().DecisionStrategy = groupsOf(intstr.FromString("25%"))
		w.schedule()
		w.expectGroups("0  [p-decision-1] 1", "1  [p-decision-2] 1", "2  [p-decision-3] 1")
	},
	"P067": func(t *testing.T) {
		w := newWorld(t, many(101)...)
		w.schedule()
		w.expectGroups("0  [p-decision-1 p-decision-2] 101")
		if len(w.decisions[0].Status.Decisions) != 100 || len(w.decisions[1].Status.Decisions) != 1 {
			t.Error("slices of", len(w.decisions[0].Status.Decisions), len(w.decisions[1].Status.Decisions))
		}
	},
	"P068": func(t *testing.T) {
		w := newWorld(t, many(128)...)
		w.schedule() // which schedules again.
	},
	"P069": func(t *testing.T) {
		w := newWorld(t, many(128)...)
		w.decisions = []*clusterv1beta1.PlacementDecision{decision("p-decision-1", 0, "fakegroup", w.names()[:100]...)}
		w.schedule()
		w.expectSteps("Relabel p-decision-1 100 []", "Create p-decision-2 28 [DecisionCreate]")
	},
	"P070": func(t *testing.T) {
		w := newWorld(t, many(5)...)
		w.schedule()
		w.decisions = nil
		w.schedule()
		w.expectSteps("Create p-decision-1 5 [DecisionCreate]")
	},
	"P072": func(t *testing.T) {
		w := newWorld(t, managed("c1"))
		w.schedule()
		w.expectSteps("Create p-decision-1 1 [DecisionCreate]")
		if e := w.last.Steps[0].Events[0]; e.Warning || e.Message != "Decision p-decision-1 is created with placement p in namespace ns" {
			t.Errorf("%+v", e)
		}
	},
	"P073": func(t *testing.T) {
		w := newWorld(t, managed("c1"))
		w.schedule()
		w.add(managed("c2"))
		w.schedule()
		w.expectSteps("Update p-decision-1 2 [DecisionUpdate ScoreUpdate]")
		if e := w.last.Steps[0].Events[1]; e.Warning || e.Message != "c1:200 c2:100 " {
			t.Errorf("%+v", e)
		}
	},
	"P074": func(t *testing.T) {
		w := newWorld(t, managed("c1"))
		w.schedule()
		w.add(managed("c2"))
		w.score("c1", "test", "score", 1).Status.ValidUntil = &metav1.Time{Time: w.now}
		w.spec().PrioritizerPolicy = exact(addOn("test", "score", 1))
		w.schedule()
		if e := w.last.Steps[0].Events[0]; !e.Warning || e.Message != "Decision p-decision-1 is updated with placement p in namespace ns: AddOnPlacementScores c1/test expired in plugin AddOn/test/score" {
			t.Errorf("%+v", e)
		}
	},
}

func (w *world) expectSteps(want ...string) {
	w.t.Helper()
	var got []string
	for _, s := range w.last.Steps {
		reasons := []string{}
		for _, e := range s.Events {
			reasons = append(reasons, e.Reason)
		}
		got = append(got, fmt.Sprintf("%s %s %d %v", s.Action, s.Name, len(s.Decisions), reasons))
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("steps %q, want %q", got, want)
	}
}

// Adding or removing a cluster changes one slice.
func TestSlices_ClustersStay(t *testing.T) {
	w := newWorld(t, many(250)...)
	w.schedule()
	w.add(managed("a-new-one"))
	w.schedule()
	w.expectSteps("Update p-decision-3 51 [DecisionUpdate ScoreUpdate]")
	w.fleet.DeleteCluster("c00002")
	w.schedule()
	w.expectSteps("Update p-decision-1 99 [DecisionUpdate ScoreUpdate]")
	// There are never more slices than needed.
	for _, name := range w.names()[:100] {
		w.fleet.DeleteCluster(name)
	}
	w.schedule()
	w.expectGroups("0  [p-decision-1 p-decision-2] 150")
}

// Two decisions exchange clusters, both full.
func TestSlices_Exchange(t *testing.T) {
	for _, n := range []int{2, 200} {
		w := newWorld(t)
		for i, c := range many(n) {
			c.Labels["group"] = []string{"one", "two"}[i%2]
			w.add(c)
		}
		w.spec().DecisionStrategy = groupsOf(intstr.FromString(""), "one", "two")
		w.schedule()
		w.expectGroups(fmt.Sprintf("0 one [p-decision-1] %d", n/2), fmt.Sprintf("1 two [p-decision-2] %d", n/2))
		for i, c := range many(n) {
			c.Labels["group"] = []string{"two", "one"}[i%2]
			w.add(c)
		}
		w.schedule()
		w.expectGroups(fmt.Sprintf("0 one [p-decision-1] %d", n/2), fmt.Sprintf("1 two [p-decision-2] %d", n/2))
	}
}

// The status has no room for more groups.
func TestGroups_AreBounded(t *testing.T) {
	w := newWorld(t, many(5000, "label:group=canary")...)
	w.spec().DecisionStrategy = groupsOf(intstr.FromInt32(1), "canary")
	w.schedule()
	if n := len(w.placement.Status.DecisionGroups); n > 2048 || n < 1024 {
		t.Error(n, "groups")
	}

	// There is room for them in the status, whatever their names are, and for conditions.
	const room = objectsize.StatusReserve - 8<<10
	long := strings.Repeat("x", 63)
	for name, test := range map[string]struct {
		clusters []*clusterv1.ManagedCluster
		groups   []string
		length   int32
		atLeast  int
	}{
		"small groups":  {many(5000, "label:group="+long), []string{long}, 1, 500},
		"large groups":  {many(12_000), nil, 0, 1},
		"many of both":  {many(12_000), nil, 101, 100},
		"groups of one": {many(600), nil, 1, 600},
	} {
		w := newWorld(t, test.clusters...)
		w.placement.Name = long
		w.spec().DecisionStrategy = groupsOf(intstr.FromInt32(test.length), test.groups...)
		w.schedule()
		data, err := json.Marshal(w.placement.Status.DecisionGroups)
		if n := len(w.placement.Status.DecisionGroups); err != nil || len(data) > room || n < test.atLeast {
			t.Errorf("%s: %d groups, %d bytes, %v", name, n, len(data), err)
		}
	}
}
