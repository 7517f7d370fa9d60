// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
)

// scoresBy returns the scores of a prioritizer, by the names of the clusters.
func (w *world) scoresBy(name string) (scores []int64) {
	w.t.Helper()
	for _, c := range run.Explain(w.t.Context(), spec.Compile(w.spec()), w.state()).Clusters {
		for _, s := range c.Scores {
			if s.Name == name {
				scores = append(scores, s.Score)
			}
		}
	}
	return scores
}

func (w *world) expectScores(prioritizer string, want ...int64) {
	w.t.Helper()
	if got := w.scoresBy(prioritizer); !slices.Equal(got, want) {
		w.t.Fatalf("%s: %v, want %v", prioritizer, got, want)
	}
}

func three(t *testing.T) *world { return newWorld(t, managed("c1"), managed("c2"), managed("c3")) }

// others adds placements with these decisions.
func (w *world) others(decisions ...[]string) {
	for i, clusters := range decisions {
		w.loads.Set(types.NamespacedName{Namespace: "other", Name: string(rune('a' + i))}, clusters)
	}
}

// resources returns a world of clusters with cpu and memory.
func resources(t *testing.T, amounts ...[2]string) *world {
	w := newWorld(t)
	for i, a := range amounts {
		w.add(withResources(string(rune('1'+i)), a))
	}
	return w
}

func withResources(number string, a [2]string) *clusterv1.ManagedCluster {
	return managed("c"+number, "cpu:"+a[0], "memory:"+a[1])
}

const (
	cpu    = clusterv1beta1.PrioritizerResourceAllocatableCPU
	memory = clusterv1beta1.PrioritizerResourceAllocatableMemory
)

var scoreCases = map[string]func(*testing.T){
	"P047": func(t *testing.T) { three(t).expectScores("Balance", 100, 100, 100) },
	"P048": func(t *testing.T) {
		w := three(t)
		w.loads.Set(key, []string{"c1"})
		w.expectScores("Balance", 100, 100, 100)
	},
	"P049": func(t *testing.T) {
		w := three(t)
		w.others([]string{"c1", "c2"}, []string{"c1", "c3"})
		w.expectScores("Balance", -100, 0, 0)
		w.loads.Set(key, []string{"c1"})
		w.expectScores("Balance", -100, 0, 0)
	},
	"P050": func(t *testing.T) {
		w := three(t)
		w.others([]string{"c1", "c2"})
		w.spec().NumberOfClusters = number(1)
		w.expect("c3")
	},
	"P051": func(t *testing.T) {
		w := three(t)
		w.decisions = []*clusterv1beta1.PlacementDecision{decision("p-decision-1", 0, "", "c1", "c3")}
		w.expectScores("Steady", 100, 0, 100)
	},
	"P052": func(t *testing.T) {
		w := three(t)
		w.others([]string{"c1", "c2"}, []string{"c2", "c3"})
		w.decisions = []*clusterv1beta1.PlacementDecision{decision("p-decision-1", 0, "", "c3")}
		w.spec().NumberOfClusters = number(1)
		w.expectScores("Balance", 0, -100, 0)
		w.expect("c3")
	},
	"P053": func(t *testing.T) {
		w := resources(t, [2]string{"1", "20"}, [2]string{"1", "60"}, [2]string{"1", "100"})
		w.spec().PrioritizerPolicy = exact(builtIn(memory, 1))
		w.expectScores(memory, -100, 0, 100)
	},
	"P054": func(t *testing.T) {
		for _, same := range []string{"5", "0"} {
			w := resources(t, [2]string{same, "1"}, [2]string{same, "1"}, [2]string{same, "1"})
			w.spec().PrioritizerPolicy = exact(builtIn(cpu, 1))
			w.expectScores(cpu, 100, 100, 100)
		}
	},
	"P055": func(t *testing.T) {
		w := three(t)
		w.spec().PrioritizerPolicy = exact(builtIn(memory, 1))
		w.expectScores(memory, 0, 0, 0)
	},
	"P056": func(t *testing.T) {
		w := three(t)
		w.score("c1", "test", "score", 30)
		w.spec().PrioritizerPolicy = exact(addOn("test", "score", 1))
		w.expectScores("AddOn/test/score", 30, 0, 0)
	},
	"P057": func(t *testing.T) {
		w := newWorld(t, managed("cluster1"), managed("cluster2"), managed("cluster3"))
		past := metav1.NewTime(w.now.Add(-time.Second))
		w.score("cluster1", "test", "score", 30).Status.ValidUntil = &past
		w.score("cluster2", "test", "score", 40)
		w.score("cluster3", "test", "score", 50)
		w.spec().PrioritizerPolicy = exact(addOn("test", "score", 1))
		w.expectScores("AddOn/test/score", 0, 40, 50)
		w.schedule()
		e := w.last.Steps[0].Events[0]
		if want := "Decision p-decision-1 is created with placement p in namespace ns: AddOnPlacementScores cluster1/test expired in plugin AddOn/test/score"; !e.Warning || e.Message != want {
			t.Errorf("event %+v, want %s", e, want)
		}
	},
	"P058": func(t *testing.T) {
		w := three(t)
		w.spec().NumberOfClusters = number(2)
		w.spec().PrioritizerPolicy = exact(addOn("demo", "demo", 1))
		w.expect("c1", "c2")
		for i, score := range []int32{80, 90, 100} {
			w.score(w.names()[i], "demo", "demo", score)
		}
		w.expect("c2", "c3")
		w.score("c1", "demo", "demo", 100)
		w.expect("c1", "c3")
	},
	"P059": func(t *testing.T) {
		w := resources(t, [2]string{"1", "100"}, [2]string{"1", "60"}, [2]string{"1", "20"})
		for i, score := range []int32{30, 40, 50} {
			w.score(w.names()[i], "demo", "demo", score)
		}
		w.spec().NumberOfClusters = number(2)
		w.spec().PrioritizerPolicy.Configurations = []clusterv1beta1.PrioritizerConfig{builtIn("Balance", 3), builtIn(memory, 1), addOn("demo", "demo", 1)}
		w.expectPrioritizers("Balance 3", "Steady 1", memory+" 1", "AddOn/demo/demo 1")
		w.expectScores(memory, 100, 0, -100)
		w.expect("c1", "c2")
	},
	"P060": func(t *testing.T) {
		w := three(t)
		w.spec().PrioritizerPolicy = exact(builtIn("Balance", 3), builtIn(memory, 1), builtIn("Steady", 0))
		w.expectPrioritizers("Balance 3", memory+" 1")
	},
	"P061": func(t *testing.T) {
		w := resources(t, [2]string{"1", "10"}, [2]string{"2", "20"}, [2]string{"3", "30"})
		w.spec().NumberOfClusters = number(2)
		w.expect("c1", "c2")
	},
	"P062": func(t *testing.T) {
		w := resources(t, [2]string{"10", "50"}, [2]string{"7", "90"}, [2]string{"9", "80"})
		w.spec().NumberOfClusters = number(2)
		w.spec().PrioritizerPolicy = exact(builtIn(cpu, 1), builtIn(memory, 1))
		w.expect("c1", "c3")
		w.add(withResources("4", [2]string{"10", "100"}))
		w.expect("c3", "c4")
		w.fleet.DeleteCluster("c4")
		w.expect("c1", "c3")
	},
}

// names returns the names of all clusters in s1.
func (w *world) names() (names []string) {
	members, _, _ := w.fleet.Members("s1")
	for _, c := range members {
		names = append(names, c.Name())
	}
	return names
}

func (w *world) expectPrioritizers(want ...string) {
	w.t.Helper()
	var got []string
	for _, s := range run.Explain(w.t.Context(), spec.Compile(w.spec()), w.state()).Clusters[0].Scores {
		got = append(got, s.Name+" "+string(rune('0'+s.Weight)))
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("prioritizers %v, want %v", got, want)
	}
}

func TestPolicy_Misconfigured(t *testing.T) {
	for want, policy := range map[string]clusterv1beta1.PrioritizerPolicy{
		"Prioritizer:incorrect prioritizer policy mode: X":  {Mode: "X"},
		"Prioritizer:scoreCoordinate field is required":     exact(clusterv1beta1.PrioritizerConfig{}),
		"Prioritizer:incorrect builtin prioritizer: Spread": exact(builtIn("Spread", 1)),
		"Prioritizer:addOn should not be empty":             exact(clusterv1beta1.PrioritizerConfig{ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{Type: "AddOn"}}),
	} {
		misconfiguredCase(func(s *clusterv1beta1.PlacementSpec) { s.PrioritizerPolicy = policy }, want)(t)
	}
	misconfiguredCase(func(s *clusterv1beta1.PlacementSpec) { s.NumberOfClusters = number(-1) }, "NumberOfClusters:")(t)
}

// The default weight is 1, and the last weight of a prioritizer counts.
func TestWeights(t *testing.T) {
	w := three(t)
	unset := builtIn(memory, 0)
	unset.Weight = nil
	w.spec().PrioritizerPolicy = exact(unset, builtIn(cpu, 5), builtIn(cpu, 2))
	w.expectPrioritizers(memory+" 1", cpu+" 2")
}

// Scores are ordered and shown only if the spec says so; then their writes are limited.
func TestSortByScore(t *testing.T) {
	w := three(t)
	for i, score := range []int32{10, 30, -20} {
		w.score(w.names()[i], "demo", "demo", score)
	}
	w.spec().PrioritizerPolicy = exact(addOn("demo", "demo", 1))
	w.schedule()
	w.expectDecisions("c1 0", "c2 0", "c3 0")
	if w.placement.Status.LastScoreUpdateTime != nil {
		t.Error("a time of scores that are not shown")
	}
	w.spec().SortBy, w.spec().ScoreRateLimit = clusterv1beta1.PlacementSortByScore, "30s"
	w.schedule()
	w.expectDecisions("c2 30", "c1 10", "c3 -20")
	written := w.placement.Status.LastScoreUpdateTime
	if written == nil || !written.Time.Equal(w.now) {
		t.Fatal(written)
	}

	w.now = w.now.Add(10 * time.Second)
	w.score("c3", "demo", "demo", 90)
	w.schedule()
	w.expectDecisions("c2 30", "c1 10", "c3 -20")
	if want := written.Add(30 * time.Second); !w.last.Again.Equal(want) || len(w.last.Steps) > 0 {
		t.Errorf("again at %v, want %v; steps %v", w.last.Again, want, w.last.Steps)
	}
	w.now = w.last.Again
	w.schedule()
	w.expectDecisions("c3 90", "c2 30", "c1 10")

	// A change of the chosen clusters is never delayed.
	w.add(managed("c4"))
	w.schedule()
	w.expectDecisions("c3 90", "c2 30", "c1 10", "c4 0")
	w.spec().SortBy = clusterv1beta1.PlacementSortByClusterName
	w.schedule()
	w.expectDecisions("c1 0", "c2 0", "c3 0", "c4 0")
	if w.placement.Status.LastScoreUpdateTime != nil {
		t.Error("a time of scores that are not shown")
	}
}

// A change of groups does not count as one of scores.
func TestSortByScore_GroupChanges(t *testing.T) {
	w := three(t)
	w.spec().SortBy = clusterv1beta1.PlacementSortByScore
	w.schedule()
	w.score("c1", "demo", "demo", 10)
	w.spec().PrioritizerPolicy = exact(addOn("demo", "demo", 1))
	w.schedule()
	w.spec().DecisionStrategy.GroupStrategy.DecisionGroups = []clusterv1beta1.DecisionGroup{{GroupName: "canary",
		ClusterSelector: clusterv1beta1.GroupClusterSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"canary": "yes"}}}}}
	w.add(managed("c2", "label:canary=yes"))
	w.schedule()
	if g := w.placement.Status.DecisionGroups; len(g) != 2 || g[0].DecisionGroupName != "canary" {
		t.Errorf("groups %+v", g)
	}
}

// When scores expire, the placement is scheduled without any event.
func TestValidUntil(t *testing.T) {
	w := three(t)
	until := metav1.NewTime(w.now.Add(time.Minute))
	w.score("c3", "demo", "demo", 50).Status.ValidUntil = &until
	w.spec().PrioritizerPolicy = exact(addOn("demo", "demo", 1))
	w.spec().NumberOfClusters = number(1)
	w.expect("c3")
	if !w.last.Again.Equal(until.Time) {
		t.Errorf("again at %v, want %v", w.last.Again, until)
	}
	w.now = until.Time
	w.expect("c1")
}

func (w *world) expectDecisions(want ...string) {
	w.t.Helper()
	var got []string
	for _, d := range w.decisions {
		for _, one := range d.Status.Decisions {
			got = append(got, strings.TrimSpace(one.ClusterName+" "+itoa(one.Score)))
		}
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("decisions %v, want %v", got, want)
	}
}
