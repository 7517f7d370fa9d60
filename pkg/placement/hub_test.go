// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/expression"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
)

// hubWorld is a hub whose results are written at once.
type hubWorld struct {
	*Scheduler
	t   *testing.T
	now time.Time
}

func newHubWorld(t *testing.T) *hubWorld {
	return &hubWorld{Scheduler: NewScheduler(), t: t, now: start}
}

func (w *hubWorld) place(namespace, name string, change func(*clusterv1beta1.PlacementSpec)) types.NamespacedName {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Generation: 1}}
	if s := w.placements[key]; s != nil {
		p.Generation, p.Status = s.placement.Generation+1, s.placement.Status
	}
	if change != nil {
		change(&p.Spec)
	}
	w.SetPlacement(p)
	return key
}

// round writes the results, passes them to the hub as a watch would, and returns the names of their placements.
func (w *hubWorld) round() (written []string) {
	results, err := w.Round(context.Background(), w.now)
	if err != nil {
		panic(err)
	}
	for key, result := range results {
		for _, step := range result.Steps {
			if step.Action == run.Delete {
				w.DeleteDecision(types.NamespacedName{Namespace: key.Namespace, Name: step.Name})
				continue
			}
			d := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: step.Name, Labels: step.Labels,
				OwnerReferences: run.Owners(w.placements[key].placement)}}
			d.Status.Decisions = step.Decisions
			if step.Action == run.Relabel {
				d.Status = w.decisions[key][step.Name].Status
			}
			w.SetDecision(d)
		}
		p := *w.placements[key].placement
		p.Status = result.Status
		w.SetPlacement(&p)
		w.Written(key, nil)
		written = append(written, key.Name)
	}
	slices.Sort(written)
	return written
}

func (w *hubWorld) expectRound(want ...string) {
	w.t.Helper()
	if got := w.round(); !slices.Equal(got, want) {
		w.t.Fatalf("written: %v, want %v", got, want)
	}
}

func (w *hubWorld) touched(want ...string) {
	w.t.Helper()
	var got []string
	for key := range w.dirty {
		got = append(got, key.Name)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.t.Fatalf("touched: %v, want %v", got, want)
	}
}

var triggerCases = map[string]func(*testing.T){
	"P075": func(t *testing.T) {
		w := newHubWorld(t)
		w.SetSet(exclusiveSet("s1"))
		w.SetSet(exclusiveSet("s2"))
		w.SetSet(exclusiveSet("s3"))
		for i, set := range []string{"s1", "s2", "s3"} {
			namespace := fmt.Sprint("ns", i+1)
			w.SetBinding(namespace, set)
			w.place(namespace, "of-"+set, nil)
		}
		w.SetCluster(t.Context(), managed("c1"), w.now)
		w.round()
		w.SetCluster(t.Context(), managed("c1", "label:cluster.open-cluster-management.io/clusterset=s2"), w.now)
		w.touched("of-s1", "of-s2")
		w.expectRound("of-s1", "of-s2")
	},
	"P076": func(t *testing.T) {
		w := newHubWorld(t)
		w.SetSet(exclusiveSet("s1"))
		w.SetSet(exclusiveSet("s2"))
		w.SetCluster(t.Context(), managed("c1"), w.now)
		w.SetBinding("ns1", "s1")
		w.SetBinding("ns2", "s2")
		names := func(s *clusterv1beta1.PlacementSpec) {
			s.NumberOfClusters, s.PrioritizerPolicy = number(1), exact(addOn("gpu", "free", 1))
		}
		w.place("ns1", "bound", names)
		w.place("ns2", "elsewhere", names)
		w.place("ns1", "names-none", nil)
		w.round()
		w.SetScore(t.Context(), newWorld(t).score("c1", "gpu", "free", 5), w.now)
		w.touched("bound")
		w.expectRound()
		// The same scores again are no change.
		w.SetScore(t.Context(), newWorld(t).score("c1", "gpu", "free", 5), w.now)
		w.touched()
		w.DeleteScore(t.Context(), types.NamespacedName{Namespace: "c1", Name: "gpu"}, w.now)
		w.touched("bound")
	},
}

// oneOf returns a hub with the clusters c1 and c2, and the placement p for one of those with a=b.
func oneOf(t *testing.T) (*hubWorld, types.NamespacedName) {
	w := newHubWorld(t)
	w.SetSet(exclusiveSet("s1"))
	w.SetBinding("ns", "s1")
	w.SetCluster(t.Context(), managed("c1", "label:a=b"), w.now)
	w.SetCluster(t.Context(), managed("c2", "label:a=b"), w.now)
	key := w.place("ns", "p", func(s *clusterv1beta1.PlacementSpec) {
		s.NumberOfClusters, s.Predicates = number(1), one(matchLabels("a=b"))
	})
	w.expectRound("p")
	return w, key
}

// The hub's own writes, and changes without an effect, cause no write.
func TestHub_WritesOnlyChanges(t *testing.T) {
	w, key := oneOf(t)
	w.touched()
	w.expectRound()
	w.SetCluster(t.Context(), managed("c2", "label:a=b", "label:o=o"), w.now)
	w.SetCluster(t.Context(), managed("c3"), w.now)
	w.SetSet(exclusiveSet("s1"))
	w.SetBinding("ns", "s1")
	w.SetPlacement(w.placements[key].placement)
	w.SetDecision(w.decisions[key]["p-decision-1"])
	w.expectRound()
	// A burst is one result.
	for i := range 50 {
		w.SetCluster(t.Context(), managed(fmt.Sprint("b", i), "label:a=b"), w.now)
	}
	w.DeleteCluster("c1")
	w.expectRound("p")
}

// A changed cluster affects only the placements that it can concern.
func TestHub_TouchesFew(t *testing.T) {
	w := newHubWorld(t)
	w.SetSet(exclusiveSet("s1"))
	w.SetBinding("ns", "s1")
	for i := range 50 {
		w.SetCluster(t.Context(), managed(fmt.Sprint("c", i), fmt.Sprint("label:zone=", i)), w.now)
		w.place("ns", fmt.Sprint("p", i), func(s *clusterv1beta1.PlacementSpec) {
			s.NumberOfClusters, s.Predicates = number(1), one(matchLabels(fmt.Sprint("zone=", i)))
			s.PrioritizerPolicy.Configurations = []clusterv1beta1.PrioritizerConfig{addOn("gpu", "free", 1)}
		})
	}
	w.round()
	w.SetScore(t.Context(), newWorld(t).score("c7", "gpu", "free", 5), w.now)
	w.touched("p7")
	w.expectRound()
	w.SetCluster(t.Context(), managed("c7", "label:zone=7", "taint:k=v:NoSelect"), w.now)
	w.touched("p7")
	w.expectRound("p7")
	w.SetCluster(t.Context(), managed("c7", "label:zone=8"), w.now)
	w.touched("p7", "p8")
	w.expectRound("p7")
}

func TestHub_Repairs(t *testing.T) {
	w, key := oneOf(t)
	for name, harm := range map[string]func(){
		"deleted": func() { w.DeleteDecision(types.NamespacedName{Namespace: "ns", Name: "p-decision-1"}) },
		"another": func() { d := decision("p-decision-1", 0, "", "c9"); d.Namespace = "ns"; w.SetDecision(d) },
		"forged":  func() { d := decision("forged", 0, "", "c9"); d.Namespace = "ns"; w.SetDecision(d) },
		"without label": func() {
			d := decision("p-decision-1", 0, "", "c1")
			d.Namespace, d.Labels = "ns", nil
			w.SetDecision(d)
		},
		"of a placement that was": func() {
			d := decision("p-decision-1", 0, "", "c1")
			d.Namespace, d.OwnerReferences[0].UID = "ns", "before"
			w.SetDecision(d)
		},
		"the status": func() { p := *w.placements[key].placement; p.Status.NumberOfSelectedClusters = 7; w.SetPlacement(&p) },
	} {
		harm()
		if got := w.round(); !slices.Equal(got, []string{"p"}) {
			t.Errorf("%s: written: %v", name, got)
		}
		d := w.decisions[key]
		if len(d) != 1 || d["p-decision-1"].Status.Decisions[0].ClusterName != "c1" || w.placements[key].placement.Status.NumberOfSelectedClusters != 1 {
			t.Errorf("%s: %v", name, d)
		}
		w.expectRound()
	}
}

// A placement that is being written is not in another round, and one that could not be written is in the next.
func TestHub_Writing(t *testing.T) {
	w, key := oneOf(t)
	w.DeleteCluster("c1")
	for range 2 {
		results, err := w.Round(t.Context(), w.now)
		if err != nil || len(results) != 1 {
			t.Fatal(results, err)
		}
		w.SetCluster(t.Context(), managed("c3", "label:a=b"), w.now)
		results, err = w.Round(t.Context(), w.now)
		if err != nil || len(results) != 0 || !w.Next(w.now).IsZero() {
			t.Fatal(results, err, w.Next(w.now))
		}
		w.Written(key, errors.New("a conflict"))
		if !w.Next(w.now).Equal(w.now) {
			t.Error("nothing to do after an error")
		}
	}
	w.expectRound("p")
	w.DeletePlacement(key)
	w.Written(key, nil)
	w.expectRound()
}

func TestHub_Next(t *testing.T) {
	w, _ := oneOf(t)
	if next := w.Next(w.now); !next.IsZero() {
		t.Error(next)
	}
	seconds := int64(30)
	w.place("ns", "p", func(s *clusterv1beta1.PlacementSpec) {
		s.Tolerations = []clusterv1beta1.Toleration{{Key: "k", Operator: "Exists", TolerationSeconds: &seconds}}
	})
	w.expectRound("p")
	w.SetCluster(t.Context(), managed("c2", "taint:k=v:NoSelect"), w.now)
	w.expectRound()
	end := w.now.Add(30 * time.Second)
	if next := w.Next(w.now); !next.Equal(end) {
		t.Fatalf("next %v, want %v", next, end)
	}
	w.now = end
	w.expectRound("p")
	if next := w.Next(w.now); !next.IsZero() {
		t.Error(next)
	}
}

// A placement that is disabled, or being deleted, is not written.
func TestHub_IgnoresDisabledAndDeleted(t *testing.T) {
	w, key := oneOf(t)
	p := *w.placements[key].placement
	p.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}
	w.SetPlacement(&p)
	w.DeleteCluster("c1")
	w.expectRound()
	p = *w.placements[key].placement
	enabled := p
	enabled.Annotations = nil
	w.SetPlacement(&enabled)
	w.expectRound("p")
	deleting := *w.placements[key].placement
	deleting.DeletionTimestamp = &metav1.Time{Time: w.now}
	w.SetPlacement(&deleting)
	w.DeleteCluster("c2")
	w.expectRound()
}

// A panic caused by one placement does not block others, and is returned as an error.
func TestHub_PanicDoesNotBlockOthers(t *testing.T) {
	w, key := oneOf(t)
	other := w.place("ns", "q", nil)
	w.expectRound("q")
	w.placements[key].program = &spec.Program{Predicates: []spec.ClusterSelector{{Expressions: []*expression.Program{nil}}}} // a nil expression
	w.SetCluster(t.Context(), managed("c2", "taint:k=v:NoSelect"), w.now)
	w.touched("p", "q")
	results, err := w.Round(t.Context(), w.now)
	if len(results) != 1 || results[other] == nil || err == nil || !strings.Contains(err.Error(), "ns/p") {
		t.Fatalf("results: %v, %v", results, err)
	}
	if next := w.Next(w.now); !next.Equal(w.now.Add(afterPanic)) {
		t.Errorf("next %v", next)
	}
}
