// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"strings"
	"testing"
	"time"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

// A placement with expensive CEL is run less often, however much happens.
func TestHub_ExpensiveCELPauses(t *testing.T) {
	w := newHubWorld(t)
	w.SetSet(exclusiveSet("s1"))
	w.SetBinding("ns", "s1")
	w.SetCluster(t.Context(), managed("c1"), w.now)
	key := w.place("ns", "p", func(s *clusterv1beta1.PlacementSpec) {
		s.Predicates = one(withCEL(anything, `[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, a + b + c + d > 0))))`))
	})
	w.expectRound("p")
	until := w.placements[key].notBefore
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
	// The question alone would cost too much, so it is not answered.
	w.now = w.placements[key].notBefore
	w.SetCluster(t.Context(), managed("c2", "label:o=o"), w.now)
	w.touched("p")
	w.expectRound()

	// Other expressions wait as well, or edits would get around the pause. An edit that takes the last one away does not.
	until = w.placements[key].notBefore
	w.place("ns", "p", func(s *clusterv1beta1.PlacementSpec) { s.Predicates = one(withCEL(anything, `true`)) })
	if next := w.Next(w.now); !next.Equal(until) || !until.After(w.now) {
		t.Errorf("next %v, want %v", next, until)
	}
	w.place("ns", "p", nil)
	if next := w.Next(w.now); !next.Equal(w.now) {
		t.Errorf("next %v, want %v", next, w.now)
	}
}

// A fault that a spec brings to light is told once, and the placement keeps what it has.
func TestHub_APanicOfTheCompilerIsAMisconfiguredPlacement(t *testing.T) {
	w, key := oneOf(t)
	compile := w.compile
	w.compile = func(*clusterv1beta1.PlacementSpec) *Program { panic("a fault") }
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
