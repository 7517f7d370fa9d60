// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package workevents

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

type change = kit.Change[*workv1.ManifestWork]

// applied returns a work of a cluster for which the agent reports "STATUS REASON MESSAGE", or nothing.
func applied(cluster, says string) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "w"}}
	if says != "" {
		part := strings.SplitN(says, " ", 3)
		w.Status.Conditions = []metav1.Condition{{Type: workv1.WorkAvailable, Status: "False", Reason: "ResourcesNotAvailable"},
			{Type: workv1.WorkApplied, Status: metav1.ConditionStatus(part[0]), Reason: part[1], Message: part[2]}}
	}
	return w
}

// contested adds to a work the condition that another program changes one of its objects again and again.
func contested(w *workv1.ManifestWork) *workv1.ManifestWork {
	w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{
		Type: workv1.WorkContested, Status: metav1.ConditionTrue, Reason: "ChangedRepeatedly", Message: "The field .data.k is changed"})
	return w
}

// tested is a teller, with the events that it has recorded.
type tested struct {
	*teller
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
}

func newTested() *tested {
	c, recorder := clocktesting.NewFakePassiveClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), events.NewFakeRecorder(100_000)
	return &tested{newTeller(recorder, c), c, recorder}
}

func (t *tested) told() (all []string) {
	for len(t.events.Events) > 0 {
		all = append(all, <-t.events.Events)
	}
	return all
}

const (
	well   = "True AppliedManifestWorkComplete Apply manifest work complete"
	failed = "False AppliedManifestWorkFailed Failed to apply manifest work"
	over   = "Normal AppliedManifestWorkComplete Apply manifest work complete"
	fault  = "Warning AppliedManifestWorkFailed Failed to apply manifest work"
)

func TestEvents_FaultsAndRecovery(t *testing.T) {
	labelled := func(w *workv1.ManifestWork, label string) *workv1.ManifestWork {
		w.Labels = map[string]string{label: "x"}
		return w
	}
	of := func(label string) change {
		return change{Before: labelled(applied("c1", well), label), After: labelled(applied("c1", failed), label)}
	}
	between := func(before, after string) change {
		return change{Before: applied("c1", before), After: applied("c1", after)}
	}
	for name, test := range map[string]struct {
		change change
		want   []string
	}{
		"nothing is known yet":       {change{After: applied("c1", "")}, nil},
		"applied for the first time": {between("", well), nil},
		"not applied at first":       {between("", failed), []string{fault}},
		"not applied any more":       {between(well, failed), []string{fault}},
		"contested": {change{Before: applied("c1", well), After: contested(applied("c1", well))},
			[]string{"Warning ChangedRepeatedly The field .data.k is changed"}},
		"applied again":                 {between(failed, well), []string{over}},
		"the same, with other words":    {between(failed, failed+" and more"), nil},
		"another fault":                 {between(failed, "False Other o"), []string{"Warning Other o"}},
		"unknown":                       {between(well, "Unknown Lost l"), []string{"Warning Lost l"}},
		"applied anew":                  {between(well, "True Again a"), nil},
		"told no more":                  {between(failed, ""), nil},
		"there when the hub starts":     {change{After: applied("c1", failed), Known: true}, nil},
		"made while nobody looked":      {change{After: applied("c1", failed)}, []string{fault}},
		"deleted":                       {change{Before: applied("c1", failed)}, nil},
		"of a replica set":              {of(work.ReplicaSetLabel), nil},
		"of a replica set, by its hash": {of(work.ReplicaSetHashLabel), nil},
		"of an edge placement":          {of(edgev1alpha1.PlacementHashLabel), nil},
		"with another label":            {of("team"), []string{fault}},
		"longer than an event may be": {between(well, "False "+strings.Repeat("R", 1024)+" "+strings.Repeat("m", 32_768)),
			[]string{"Warning " + strings.Repeat("R", 125) + "… " + strings.Repeat("m", 1020) + "…"}},
	} {
		tested := newTested()
		tested.record(test.change)
		if got := tested.told(); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// flips changes a work of a cluster to another fault and back, as often as an agent likes.
func (t *tested) flips(cluster string, times int) {
	for i := range times {
		said := fmt.Sprintf("False Fault%d x", i)
		t.record(change{Before: applied(cluster, well), After: applied(cluster, said)})
		t.record(change{Before: applied(cluster, said), After: applied(cluster, well)})
	}
}

func TestEvents_FlappingAgentIsLimited(t *testing.T) {
	tested := newTested()
	tested.flips("c1", 5000)
	if n := len(tested.told()); n != clusterAtOnce {
		t.Errorf("there are %d events at once, want %d", n, clusterAtOnce)
	}
	tested.record(change{Before: applied("c2", well), After: applied("c2", failed)})
	if got := tested.told(); !slices.Equal(got, []string{fault}) {
		t.Errorf("another cluster has %q", got)
	}
	// A cluster has at most one event per minute in the long run.
	for range 360 {
		tested.clock.SetTime(tested.clock.Now().Add(10 * time.Second))
		tested.flips("c1", 100)
	}
	if n := len(tested.told()); n != 60 {
		t.Errorf("there are %d events in an hour, want 60", n)
	}
}

func TestEvents_AllClustersAreLimitedTogether(t *testing.T) {
	tested := newTested()
	flip := func(clusters string) (n int) {
		for i := range 1000 {
			tested.flips(fmt.Sprint(clusters, i), 20)
		}
		return len(tested.told())
	}
	if n := flip("a"); n != atOnce {
		t.Errorf("there are %d events at once, want %d", n, atOnce)
	}
	tested.clock.SetTime(tested.clock.Now().Add(10 * time.Second))
	if n := flip("b"); n != 10*perSecond {
		t.Errorf("there are %d events after ten seconds, want %d", n, 10*perSecond)
	}
}
