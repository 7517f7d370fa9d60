// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/placement"
	placementrun "github.com/clusterhub/clusterhub/pkg/placement/run"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// both has hub-controller-manager's implementation and the peer, with the same objects.
type both struct {
	*testing.T
	hub   *placement.Scheduler
	naive *naive
	now   time.Time
}

func newBoth(t *testing.T) *both {
	b := &both{T: t, hub: placement.NewScheduler(), naive: newNaive(), now: time.Date(2026, 1, 12, 8, 0, 0, 0, time.UTC)}
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	b.hub.SetSet(set)
	b.naive.fleet.SetSet(set)
	b.hub.SetBinding("team", "s")
	return b
}

func (b *both) cluster(name, env string) {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
		Labels: map[string]string{kit.SetLabel: "s", "env": env}}}
	b.hub.SetCluster(b.Context(), c, b.now)
	b.naive.fleet.SetCluster(c)
}

func (b *both) place(name, env string) {
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
	p.Spec.NumberOfClusters = new(int32(2))
	p.Spec.PrioritizerPolicy.Mode = "Exact" // no balance, which depends on how often each is run
	p.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"env": env}}}}}
	b.hub.SetPlacement(p)
	b.naive.add(p, []string{"s"})
}

// run runs both, and returns how many placements the hub has run and how many decisions the peer has changed.
func (b *both) run() (runs, changed int) {
	b.Helper()
	b.hub.Timing = func(part placementrun.Phase, _ string, _ time.Duration) {
		if part == placementrun.TimeRun {
			runs++
		}
	}
	results, err := b.hub.Round(b.Context(), b.now)
	if err != nil {
		b.Fatal(err)
	}
	for key := range results {
		b.hub.Written(key, nil)
	}
	changed, err = b.naive.round(b.Context(), b.now)
	if err != nil {
		b.Fatal(err)
	}
	for key, r := range results {
		var own []string
		for _, p := range b.naive.placements {
			for _, d := range p.decisions {
				for _, of := range d.Status.Decisions {
					if p.key == key {
						own = append(own, of.ClusterName)
					}
				}
			}
		}
		slices.Sort(own)
		if !slices.Equal(own, r.Clusters) {
			b.Errorf("%s: the peer has chosen %v, and hub-controller-manager would %v", key, own, r.Clusters)
		}
	}
	return runs, changed
}

// TestNaive verifies that the peer has the same results as hub-controller-manager, and evaluates everything for them.
func TestNaive(t *testing.T) {
	b := newBoth(t)
	for i := range 6 {
		b.cluster(fmt.Sprint("c", i), []string{"production", "staging"}[i%2])
	}
	b.place("p", "production")
	b.place("q", "staging")
	if runs, changed := b.run(); runs != 2 || changed != 2 {
		t.Errorf("at first %d runs, and %d changes of the peer", runs, changed)
	}
	if _, changed := b.run(); changed != 0 {
		t.Errorf("without a change the peer changes %d decisions", changed)
	}
	b.cluster("c0", "other")
	if runs, changed := b.run(); runs != 1 || changed != 1 {
		t.Errorf("after the change of one label %d runs, and %d changes of the peer", runs, changed)
	}
}

func TestDecisionWatch(t *testing.T) {
	w := &decisionWatch{clusters: map[string][]string{}}
	const event = `{"type":%q,"object":{"metadata":{"namespace":"n","name":%q,"resourceVersion":%q},"status":{"decisions":[%s]}}}`
	see := func(kind, name, version, decisions string) {
		t.Helper()
		if err := w.observe(fmt.Appendf(nil, event, kind, name, version, decisions), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	see("ADDED", "a", "1", "")
	see("MODIFIED", "a", "2", `{"clusterName":"c2"},{"clusterName":"c1"}`)
	see("ADDED", "b", "3", `{"clusterName":"c1"}`)
	see("BOOKMARK", "", "9", "")
	if w.count() != 3 || w.version != "9" || w.filled() != 2 {
		t.Errorf("%d events up to %s, and %d decisions with clusters", w.count(), w.version, w.filled())
	}
	if cluster, n := w.chosen(func(string) bool { return true }); cluster != "c1" || n != 2 {
		t.Errorf("%s is in %d decisions", cluster, n)
	}
	if cluster, n := w.chosen(func(name string) bool { return name != "c1" }); cluster != "c2" || n != 1 {
		t.Errorf("%s is in %d decisions", cluster, n)
	}
	see("DELETED", "b", "10", `{"clusterName":"c1"}`)
	if _, n := w.chosen(func(string) bool { return true }); n != 1 || w.filled() != 1 {
		t.Errorf("a decision that is deleted counts: %d", n)
	}
	if err := w.observe([]byte(`{"type":"ERROR","object":{"message":"too old"}}`), time.Now()); err == nil || err.Error() != "too old" {
		t.Errorf("the error of a watch is %v", err)
	}
}

func TestPlacementChange_Result(t *testing.T) {
	c := &placementChange{name: changeTaint}
	for _, own := range []time.Duration{2, 90, 4} { // a garbage collection is an outlier
		c.count(kit.CPUTimes{kit.ProcControllers: own * time.Millisecond}, map[string]int{"patch a": 2}, 10, 1)
		c.peerCPU = append(c.peerCPU, 40*time.Millisecond)
	}
	r := c.result(1000)
	if r.FewerRuns != 100 || r.LessCPU != 10 || r.Writes["patch a"] != 2 || r.Tries != 3 || r.CPU[kit.ProcControllers] != 32 {
		t.Errorf("the result is %+v", r)
	}
	c = &placementChange{name: changeOther}
	c.count(kit.CPUTimes{}, nil, 0, 1)
	c.peerCPU = kit.Samples{40 * time.Millisecond}
	if r := c.result(1000); r.FewerRuns != 1000 || r.LessCPU != 40 || r.allWrites() != 0 {
		t.Errorf("nothing is less than %+v", r)
	}
}
