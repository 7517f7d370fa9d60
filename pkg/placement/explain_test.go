// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/fleet"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
)

func (w *world) explain() (lines []string) {
	for _, e := range run.Explain(w.t.Context(), spec.Compile(w.spec()), w.state()).Clusters {
		line := fmt.Sprintf("%s %v %t %s", e.Cluster, e.Sets, e.Chosen, e.FilteredBy)
		if e.Chosen {
			line += fmt.Sprintf("%d %s %s", e.GroupIndex, e.GroupName, e.Decision)
		}
		if len(e.Scores) > 0 {
			line += fmt.Sprintf(" %d", e.Total)
		}
		lines = append(lines, line+": "+e.Message)
	}
	return lines
}

func TestExplain(t *testing.T) {
	deleting := managed("c6")
	deleting.DeletionTimestamp = &metav1.Time{Time: start}
	w := newWorld(t, managed("c1", "label:a=b", "taint:k=v:NoSelect"), managed("c2", "claim:x=z"), managed("c3", "label:a=b", "label:group=canary"),
		managed("c4", "label:a=b"), managed("c5", "label:a=b"), deleting)
	w.fleet.SetSet(labelSet("all", &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}))
	w.bindings = []string{"s1", "all"}
	w.others([]string{"c4"})
	w.spec().NumberOfClusters = number(2)
	w.spec().Predicates = []clusterv1beta1.ClusterPredicate{withClaim(anything, "x", "y"), matchLabels("a=b")}
	w.spec().DecisionStrategy = groupsOf(intstr.IntOrString{}, "canary")
	want := []string{
		"c1 [all s1] false TaintToleration: The taint k=v:NoSelect of the cluster is not tolerated",
		"c2 [s1] false Predicate: The cluster does not match the claimSelector of predicate 0, nor the labelSelector of predicate 1",
		"c3 [all s1] true 0 canary p-decision-1 100: The cluster is chosen",
		"c4 [all s1] false NumberOfClusters -100: 2 clusters are wanted, and others come before this one",
		"c5 [all s1] true 1  p-decision-2 100: The cluster is chosen",
		"c6 [s1] false Deletion: The cluster is being deleted",
	}
	if got := w.explain(); !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	w.expect("c3", "c5")

	w.spec().NumberOfClusters = nil
	w.spec().SpreadPolicy.SpreadConstraints = []clusterv1beta1.SpreadConstraintsTerm{over("Label", "group", 1, clusterv1beta1.DoNotSchedule)}
	if got, want := w.explain()[4], "c5 [all s1] false Spread 200: The cluster would break a constraint of the spreadPolicy with DoNotSchedule"; got != want {
		t.Errorf("%s, want %s", got, want)
	}

	w.spec().NumberOfClusters = number(-1)
	explained := run.Explain(t.Context(), spec.Compile(w.spec()), w.state())
	if got := w.explain()[2]; !strings.HasPrefix(explained.Problem, "NumberOfClusters:") || got != "c3 [all s1] true 0 canary p-decision-1: The cluster is in the last decisions, which are kept" {
		t.Errorf("%s: %s", explained.Problem, got)
	}
}

// If the spec is invalid, the last decisions stay, except for clusters that the placement must not have any more.
func TestMisconfigured_RetainsLastDecisions(t *testing.T) {
	w := twoSets(t)
	w.spec().DecisionStrategy = groupsOf(intstr.FromInt32(2))
	w.expect("c1", "c2", "c3", "c4", "c5")
	groups := slices.Clone(w.placement.Status.DecisionGroups)
	w.spec().Predicates = one(withCEL(anything, "no CEL"))
	w.spec().DecisionStrategy = groupsOf(intstr.FromInt32(1), "other")
	w.expect("c1", "c2", "c3", "c4", "c5")
	if len(w.last.Steps) > 0 || len(w.placement.Status.DecisionGroups) != len(groups) {
		t.Errorf("steps %v, groups %v", w.last.Steps, w.placement.Status.DecisionGroups)
	}
	w.condition(clusterv1beta1.PlacementConditionMisconfigured, "True Misconfigured", "Predicate:")
	w.satisfied("False NotAllDecisionsScheduled", "are kept")

	terminating := managed("c1")
	terminating.DeletionTimestamp = &metav1.Time{Time: start}
	w.add(terminating)
	w.expect("c2", "c3", "c4", "c5")
	w.bindings = []string{"s2"}
	w.expect("c3", "c4", "c5")
	w.expectGroups("0  [p-decision-2] 2", "1  [p-decision-3] 1")
	w.bindings = nil
	w.expect()
	w.emptyDecision()

	w.bindings = []string{"s1", "s2"}
	w.spec().Predicates = nil
	w.schedule()
	w.expectGroups("0  [p-decision-1] 1", "1  [p-decision-2] 1", "2  [p-decision-3] 1", "3  [p-decision-4] 1")
}

// A set whose members are not known prevents all changes, except for clusters that are gone.
func TestFailure_RetainsLastDecisions(t *testing.T) {
	w := twoSets(t)
	w.expect("c1", "c2", "c3", "c4", "c5")
	unknown := exclusiveSet("s2")
	unknown.Spec.ClusterSelector.SelectorType = "Moon"
	w.fleet.SetSet(unknown)
	w.fleet.DeleteCluster("c1")
	w.expect("c2", "c3", "c4", "c5")
	w.satisfied("False NotAllDecisionsScheduled", "the members of the ManagedClusterSet s2 are not known")
	w.set("s2")
	w.expect("c2", "c3", "c4", "c5")
	w.satisfied("True AllDecisionsScheduled", "")
}

func TestNothingMatched_ReportsReason(t *testing.T) {
	deleting := managed("c5")
	deleting.DeletionTimestamp = &metav1.Time{Time: start}
	w := newWorld(t, managed("c1", "taint:k=v:NoSelect", "label:a=b"), managed("c2", "taint:k=v:NoSelect", "label:a=b"),
		managed("c3", "taint:x=:NoSelectIfNew", "label:a=b"), managed("c4"), deleting)
	w.spec().Predicates = []clusterv1beta1.ClusterPredicate{matchLabels("a=b"), withClaim(anything, "x", "y")}
	w.expect()
	w.satisfied("False NoManagedClusterMatched", "No ManagedCluster matches any of the cluster predicate: of 5 clusters in ManagedClusterSets s1 (5); "+
		"predicate 0: 1 cluster by the labelSelector; predicate 1: 1 cluster by the claimSelector; "+
		"taints that are not tolerated: k=v:NoSelect (2), x:NoSelectIfNew (1); 1 cluster being deleted")
	// A number of 0 is valid.
	w.spec().NumberOfClusters = number(0)
	w.expect()
	w.satisfied("True AllDecisionsScheduled", "")
}

// A message is never longer than conditions and events allow, whatever it contains.
func TestMessages_AreBounded(t *testing.T) {
	w := newWorld(t)
	for i, c := range many(300) {
		c.Spec.Taints = managed("x", fmt.Sprintf("taint:%s%d=%s:NoSelect", strings.Repeat("k", 300), i, strings.Repeat("ü", 500))).Spec.Taints
		w.add(c)
	}
	w.schedule()
	for _, c := range w.placement.Status.Conditions {
		if len(c.Message) > 1024 || strings.ToValidUTF8(c.Message, "") != c.Message {
			t.Errorf("%d bytes: %s", len(c.Message), c.Message)
		}
	}
	w.spec().Tolerations = []clusterv1beta1.Toleration{*tolerate("", "Exists", "", "")}
	w.schedule()
	w.fleet.DeleteCluster("c00001")
	w.schedule()
	for _, s := range w.last.Steps {
		for _, e := range s.Events {
			if len(e.Message) > 1024 || (e.Reason == "ScoreUpdate" && !strings.HasSuffix(e.Message, "......")) {
				t.Errorf("%d bytes: %s", len(e.Message), e.Message)
			}
		}
	}
}

func TestFleet_ReportsMoves(t *testing.T) {
	f := fleet.New()
	if !f.SetSet(exclusiveSet("s1")) || f.SetSet(exclusiveSet("s1")) {
		t.Error("a new set is a change, and the same again is none")
	}
	before, after, moved := f.SetCluster(managed("c1"))
	if before != nil || after == nil || !slices.Equal(moved, []string{"s1"}) {
		t.Error(before, after, moved)
	}
	f.SetSet(exclusiveSet("s2"))
	_, _, moved = f.SetCluster(managed("c1", "label:cluster.open-cluster-management.io/clusterset=s2"))
	if !slices.Equal(moved, []string{"s1", "s2"}) {
		t.Error(moved)
	}
	changed := managed("c1", "label:cluster.open-cluster-management.io/clusterset=s2", "label:a=b")
	_, after, moved = f.SetCluster(changed)
	if len(moved) > 0 {
		t.Error(moved)
	}
	members, exists, err := f.Members("s2")
	if !exists || err != nil || len(members) != 1 || members[0] != after {
		t.Error(members, exists, err)
	}
	if left := f.DeleteCluster("c1"); !slices.Equal(left, []string{"s2"}) || f.Cluster("c1") != nil {
		t.Error(left)
	}
	_, exists, _ = f.Members("s3")
	if exists {
		t.Error("a set that is not there")
	}
}

// Nothing is decided after the end of the context.
func TestSchedule_Cancelled(t *testing.T) {
	w := newWorld(t, managed("c1"))
	w.expect("c1")
	w.now = w.now.Add(time.Second)
	w.add(managed("c2"))
	ctx, cancel := contextOf(t)
	cancel()
	if result := run.Schedule(ctx, spec.Compile(w.spec()), w.state()); len(result.Steps) > 0 || !slices.Equal(result.Clusters, []string{"c1"}) {
		t.Errorf("%+v", result)
	}
}

// A condition keeps its transition time while its status stays the same.
func TestConditions_RetainTransitionTime(t *testing.T) {
	w := newWorld(t, managed("c1"))
	w.expect("c1")
	w.now = w.now.Add(time.Hour)
	w.spec().NumberOfClusters = number(2)
	w.placement.Status.Conditions = append(w.placement.Status.Conditions, metav1.Condition{Type: "Other", Status: "True", Reason: "Theirs"})
	w.expect("c1")
	if c := w.placement.Status.Conditions; len(c) != 3 || !c[0].LastTransitionTime.Time.Equal(start) || !c[1].LastTransitionTime.Time.Equal(w.now) ||
		c[0].Type != "PlacementMisconfigured" || c[1].Type != "PlacementSatisfied" || c[2].Type != "Other" {
		t.Errorf("%+v", c)
	}
}
