// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
)

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

// BenchmarkSchedule runs one placement over 10,000 clusters.
func BenchmarkSchedule(b *testing.B) {
	w := newWorld(nil)
	for i, c := range many(10_000, "claim:area=1", "cpu:10") {
		c.Labels["zone"] = fmt.Sprint(i % 10)
		w.add(c)
		w.score(c.Name, "demo", "demo", int32(i%100))
	}
	for i := range 1000 {
		w.loads.Set(types.NamespacedName{Name: fmt.Sprint(i)}, []string{fmt.Sprintf("c%05d", i), fmt.Sprintf("c%05d", i+7)})
	}
	for name, change := range map[string]func(*clusterv1beta1.PlacementSpec){
		"all": func(*clusterv1beta1.PlacementSpec) {},
		"ten, by label": func(s *clusterv1beta1.PlacementSpec) {
			s.NumberOfClusters, s.Predicates = number(10), one(matchLabels("zone=3"))
		},
		"ten, by AddOn, CPU and Balance": func(s *clusterv1beta1.PlacementSpec) {
			s.NumberOfClusters, s.PrioritizerPolicy = number(10), exact(addOn("demo", "demo", 1), builtIn(cpu, 1), builtIn("Balance", 1))
		},
		"ten, by CEL": func(s *clusterv1beta1.PlacementSpec) {
			s.NumberOfClusters, s.Predicates = number(10), one(withCEL(anything, `managedCluster.metadata.labels["zone"] == "3"`))
		},
		"a thousand, spread": func(s *clusterv1beta1.PlacementSpec) {
			s.NumberOfClusters = number(1000)
			s.SpreadPolicy.SpreadConstraints = []clusterv1beta1.SpreadConstraintsTerm{over("Label", "zone", 1, clusterv1beta1.DoNotSchedule)}
		},
	} {
		b.Run(name, func(b *testing.B) {
			w := *w
			p := *w.placement
			w.placement = &p
			change(w.spec())
			program := spec.Compile(w.spec())
			b.ReportAllocs()
			for b.Loop() {
				run.Schedule(b.Context(), program, w.state())
			}
		})
	}
}

// BenchmarkTouches checks whether a changed label affects one placement.
func BenchmarkTouches(b *testing.B) {
	w := newWorld(nil, managed("c1"))
	before, after, _ := w.fleet.SetCluster(managed("c1", "label:o=o"))
	w.spec().NumberOfClusters, w.spec().Predicates = number(10), one(matchLabels("zone=3"))
	program := spec.Compile(w.spec())
	b.ReportAllocs()
	for b.Loop() {
		if touches, _ := program.Touches(b.Context(), before, after, spec.Seen{Now: start, Scores: w.scores}); touches {
			b.Fatal("it does not matter")
		}
	}
}

// BenchmarkHub has 10,000 clusters and 1,000 placements, each of which chooses ten clusters.
func BenchmarkHub(b *testing.B) {
	full := func() *hubWorld {
		w := &hubWorld{Scheduler: NewScheduler(), now: start}
		w.SetSet(exclusiveSet("s1"))
		for i, c := range many(10_000) {
			c.Labels["zone"] = fmt.Sprint(i % 100)
			w.SetCluster(b.Context(), c, w.now)
		}
		for i := range 1000 {
			namespace := fmt.Sprint("ns", i%100)
			w.SetBinding(namespace, "s1")
			w.place(namespace, fmt.Sprint("p", i), func(s *clusterv1beta1.PlacementSpec) {
				s.NumberOfClusters, s.Predicates = number(10), one(matchLabels(fmt.Sprint("zone=", i%100)))
				s.PrioritizerPolicy.Configurations = []clusterv1beta1.PrioritizerConfig{addOn("gpu", "free", 1)}
			})
		}
		return w
	}
	b.Run("first scheduling", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			w := full()
			b.StartTimer()
			if len(w.round()) != 1000 {
				b.Fatal("not all are written")
			}
		}
	})
	w := full()
	w.round()
	b.Run("a label of nobody", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			w.SetCluster(b.Context(), managed("c00001", "label:zone=0", fmt.Sprint("label:o=", n)), w.now)
			if len(w.round()) != 0 {
				b.Fatal("something is written")
			}
		}
	})
	b.Run("a taint", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			w.SetCluster(b.Context(), managed("c00001", "label:zone=0", []string{"label:o=o", "taint:k=v:NoSelect"}[n%2]), w.now)
			w.round()
		}
	})
	b.Run("a score", func(b *testing.B) {
		scores := newWorld(nil)
		for n := int32(0); b.Loop(); n++ {
			w.SetScore(b.Context(), scores.score("c00001", "gpu", "free", n%100), w.now)
			w.round()
		}
	})
}
