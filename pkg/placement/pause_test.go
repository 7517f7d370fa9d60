// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
)

// A placement with expensive CEL is run less often, however many changes there are.
func TestHub_ExpensiveCELPauses(t *testing.T) {
	w := newHubWorld(t)
	w.SetSet(exclusiveSet("s1"))
	w.SetBinding("ns", "s1")
	w.SetCluster(t.Context(), managed("c1"), w.now)
	key := w.place("ns", "p", func(s *clusterv1beta1.PlacementSpec) {
		s.Predicates = one(withCEL(anything, `[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, a + b + c + d > 0))))`))
	})
	w.expectRound("p")
	until := w.notBefore(key, w.placements[key])
	if pause := until.Sub(w.now); pause < 100*time.Millisecond || pause > 5*time.Second {
		t.Fatal("a pause of", pause)
	}
	w.SetCluster(t.Context(), managed("c2"), w.now)
	w.expectRound()
	if next := w.Next(w.now); !next.Equal(until) {
		t.Errorf("next %v, want %v", next, until)
	}
	w.now = until
	w.expectRound("p")
	// The question alone would cost too much, so it is not evaluated.
	w.now = w.notBefore(key, w.placements[key])
	w.SetCluster(t.Context(), managed("c2", "label:o=o"), w.now)
	w.touched("p")
	w.expectRound()

	// Other expressions wait as well, or edits would bypass the pause. An edit that removes the last one does not.
	until = w.notBefore(key, w.placements[key])
	w.place("ns", "p", func(s *clusterv1beta1.PlacementSpec) { s.Predicates = one(withCEL(anything, `true`)) })
	if next := w.Next(w.now); !next.Equal(until) || !until.After(w.now) {
		t.Errorf("next %v, want %v", next, until)
	}
	w.place("ns", "p", nil)
	if next := w.Next(w.now); !next.Equal(w.now) {
		t.Errorf("next %v, want %v", next, w.now)
	}
	w.expectRound()
	// An edit that adds CEL again after a spec without it waits, too.
	w.place("ns", "p", func(s *clusterv1beta1.PlacementSpec) { s.Predicates = one(withCEL(anything, `true`)) })
	if next := w.Next(w.now); !next.Equal(until) {
		t.Errorf("next %v, want %v", next, until)
	}
}

// A namespace with many expensive placements takes no more than its share, each of them gets its turn, and no other namespace waits.
func TestHub_NamespaceWithExpensiveCELPauses(t *testing.T) {
	w := newHubWorld(t)
	w.SetSet(exclusiveSet("s1"))
	w.SetCluster(t.Context(), managed("c1"), w.now)
	// It costs 9,000,000, and takes some milliseconds.
	large := doubled(19)
	large = large[:len(large)-len("[0]")] + `.all(x, [1, 2, 3, 4, 5, 6, 7, 8, 9].all(i, !x.contains("y")))`
	dear := func(s *clusterv1beta1.PlacementSpec) {
		s.Predicates = one(withCEL(anything, slices.Repeat([]string{large}, 16)...))
	}
	for _, namespace := range []string{"a", "b"} {
		w.SetBinding(namespace, "s1")
	}
	for i := range 5 {
		w.place("a", fmt.Sprint("p", i), dear)
	}
	w.place("a", "plain", nil)
	w.place("b", "q", dear)
	// The credit is for one, and for as much more as that leaves.
	w.expectRound("p0", "p1", "plain", "q")
	w.expectRound()
	seen := map[string]bool{}
	for range 3 {
		next := w.Next(w.now)
		if wait := next.Sub(w.now); wait < 30*time.Second || wait > time.Minute {
			t.Fatalf("the next one waits for %v", wait)
		}
		w.now = next
		for _, name := range w.round() {
			seen[name] = true
		}
	}
	if len(seen) != 3 || !seen["p2"] || !seen["p3"] || !seen["p4"] {
		t.Errorf("scheduled: %v", seen)
	}
	// A change evaluates the question for none of them, whatever it would cost.
	before := w.spent["a"]
	w.SetCluster(t.Context(), managed("c1", "label:o=o"), w.now)
	if w.spent["a"] != before {
		t.Error("questions were asked")
	}
	w.now = w.now.Add(time.Hour)
	w.round()
	w.now = w.now.Add(time.Hour)
	w.spent.forget(w.now)
	if len(w.spent) > 0 {
		t.Errorf("remembered: %v", w.spent)
	}
}

// Questions about a change cost as well.
func TestHub_QuestionsCount(t *testing.T) {
	w, key := oneOf(t)
	w.place(key.Namespace, key.Name, func(s *clusterv1beta1.PlacementSpec) {
		s.Predicates = one(withCEL(anything, `managedCluster.metadata.name != "x"`))
	})
	w.round()
	w.now = w.now.Add(time.Hour)
	w.spent.forget(w.now)
	w.SetCluster(t.Context(), managed("c1", "label:o=o"), w.now)
	w.touched()
	if len(w.spent) != 1 {
		t.Errorf("spent: %v", w.spent)
	}
}

// A panic caused by a spec is returned once, and the placement keeps its decisions.
func TestHub_CompilerPanicMisconfiguresPlacement(t *testing.T) {
	w, key := oneOf(t)
	compile := w.compile
	w.compile = func(*clusterv1beta1.PlacementSpec) *spec.Program { panic("a fault") }
	w.place(key.Namespace, key.Name, nil)
	results, err := w.Round(t.Context(), w.now)
	if err == nil || !strings.Contains(err.Error(), "ns/p: panic: a fault") {
		t.Errorf("told: %v", err)
	}
	if r := results[key]; r == nil || len(r.Steps) > 0 || r.Status.Conditions[0].Reason != "Misconfigured" || !slices.Equal(r.Clusters, []string{"c1"}) {
		t.Fatalf("results: %+v", results[key])
	}
	w.placements[key].placement.Status = results[key].Status
	w.Written(key, nil)
	w.DeleteCluster("c1")
	if _, err := w.Round(t.Context(), w.now); err != nil {
		t.Errorf("told again: %v", err)
	}
	w.Written(key, nil)
	w.compile = compile
	w.place(key.Namespace, key.Name, nil)
	results, err = w.Round(t.Context(), w.now)
	if r := results[key]; err != nil || r == nil || r.Status.Conditions[0].Reason != "Succeedconfigured" {
		t.Errorf("results: %+v, %v", results[key], err)
	}
}
