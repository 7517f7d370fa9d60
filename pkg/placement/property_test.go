// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	placementfleet "github.com/clusterhub/clusterhub/pkg/placement/fleet"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
	placementspec "github.com/clusterhub/clusterhub/pkg/placement/spec"
)

// randomSpec returns a spec with random fields.
func randomSpec(random *rand.Rand) (s clusterv1beta1.PlacementSpec) {
	if random.IntN(2) == 0 {
		s.NumberOfClusters = number(int32(random.IntN(300)))
	}
	if random.IntN(2) == 0 {
		s.Predicates = []clusterv1beta1.ClusterPredicate{matchLabels("zone=0"), matchLabels("zone=1"), withClaim(anything, "area", "2")}
	}
	if random.IntN(2) == 0 {
		s.DecisionStrategy = groupsOf(intstr.FromString(fmt.Sprintf("%d%%", 1+random.IntN(100))), "0", "1")
	}
	if random.IntN(3) == 0 {
		s.SortBy = clusterv1beta1.PlacementSortByScore
	}
	if random.IntN(2) == 0 {
		s.PrioritizerPolicy.Configurations = []clusterv1beta1.PrioritizerConfig{builtIn(cpu, 1), addOn("a", "b", -2)}
	}
	if random.IntN(3) == 0 {
		s.SpreadPolicy.SpreadConstraints = []clusterv1beta1.SpreadConstraintsTerm{
			over("Label", "zone", 2, clusterv1beta1.DoNotSchedule), over("Claim", "area", 1, clusterv1beta1.ScheduleAnyway)}
	}
	s.Tolerations = []clusterv1beta1.Toleration{*tolerate("key", "Exists", "", "")}
	return s
}

func randomCluster(random *rand.Rand, i int) *clusterv1.ManagedCluster {
	c := managed(fmt.Sprintf("c%03d", i), fmt.Sprintf("label:zone=%d", random.IntN(4)), fmt.Sprintf("label:group=%d", random.IntN(3)),
		fmt.Sprintf("claim:area=%d", random.IntN(4)), fmt.Sprintf("cpu:%d", random.IntN(9)))
	switch random.IntN(8) {
	case 0:
		c.Spec.Taints = []clusterv1.Taint{{Key: "key", Effect: clusterv1.TaintEffectNoSelect}}
	case 1:
		c.Spec.Taints = []clusterv1.Taint{{Key: "other", Effect: clusterv1.TaintEffectNoSelect}}
	case 2:
		c.DeletionTimestamp = &metav1.Time{Time: start}
	}
	return c
}

// Whatever changes, each cluster that stays is in a decision after every write (which world.schedule checks), nothing is written twice, no decision
// has a cluster that is being deleted, and numbers and groups are right.
func TestSchedule_Random(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t)
		for range 12 {
			for range random.IntN(150) {
				c := randomCluster(random, random.IntN(400))
				w.add(c)
				w.score(c.Name, "a", "b", int32(random.IntN(201)-100))
			}
			for range random.IntN(30) {
				w.fleet.DeleteCluster(fmt.Sprintf("c%03d", random.IntN(400)))
			}
			if random.IntN(2) == 0 {
				*w.spec() = randomSpec(random)
			}
			w.now = w.now.Add(time.Duration(random.IntN(100)) * time.Second)
			chosen := w.schedule()
			if n := w.spec().NumberOfClusters; n != nil && len(chosen) > int(*n) {
				t.Fatalf("seed %d: %d clusters of %d", seed, len(chosen), *n)
			}
			for _, name := range chosen {
				if c := w.fleet.Cluster(name); c == nil || c.Object.DeletionTimestamp != nil {
					t.Fatalf("seed %d: %s is chosen, and gone or being deleted", seed, name)
				}
			}
			total := 0
			for _, d := range w.decisions {
				total += len(d.Status.Decisions)
			}
			if total != len(chosen) || int(w.placement.Status.NumberOfSelectedClusters) != total {
				t.Fatalf("seed %d: %d decisions of %d clusters, the status says %d", seed, total, len(chosen), w.placement.Status.NumberOfSelectedClusters)
			}
		}
	}
}

// The order in which clusters, sets, bindings and decisions are added does not matter.
func TestSchedule_OrderDoesNotMatter(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 2))
		spec := randomSpec(random)
		var clusters []*clusterv1.ManagedCluster
		for i := range 200 {
			c := randomCluster(random, i)
			if i%3 == 0 {
				c.Labels["cluster.open-cluster-management.io/clusterset"] = "s2"
			}
			clusters = append(clusters, c)
		}
		var want *run.Result
		for range 4 {
			w := newWorld(t)
			w.bindings = []string{"s1", "s2", "s3", "gone"}
			steps := []func(){func() { w.set("s2") }, func() {
				w.fleet.SetSet(labelSet("s3", &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "1"}}))
			}}
			for _, c := range clusters {
				steps = append(steps, func() { w.add(c) })
			}
			w.decisions = []*clusterv1beta1.PlacementDecision{decision("p-decision-1", 0, "", "c001", "c010"), decision("p-decision-2", 0, "", "c003")}
			random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
			random.Shuffle(len(w.bindings), func(i, j int) { w.bindings[i], w.bindings[j] = w.bindings[j], w.bindings[i] })
			random.Shuffle(len(w.decisions), func(i, j int) { w.decisions[i], w.decisions[j] = w.decisions[j], w.decisions[i] })
			for _, step := range steps {
				step()
			}
			w.placement.Spec = spec
			got := run.Schedule(t.Context(), placementspec.Compile(w.spec()), w.state())
			if want == nil {
				want = got
			} else if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d:\n%+v\n%+v", seed, got, want)
			}
		}
	}
}

// A chosen cluster stays as long as no other is better by more than the score of Steady.
func TestSteady(t *testing.T) {
	w := newWorld(t, many(10)...)
	w.spec().NumberOfClusters = number(3)
	w.fleet.DeleteCluster("c00001")
	w.expect("c00002", "c00003", "c00004")
	w.add(managed("c00001"))
	w.expect("c00002", "c00003", "c00004")
	w.others([]string{"c00001", "c00002"}, []string{"c00001", "c00003"})
	w.expect("c00002", "c00003", "c00004")
	w.spec().PrioritizerPolicy.Configurations = []clusterv1beta1.PrioritizerConfig{builtIn("Steady", 0)}
	w.expect("c00004", "c00005", "c00006")
}

// The balance of placements depends on their age, and not on the order of the changes.
func TestRound_OrderDoesNotMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	fleet := newWorld(t, many(20)...).fleet
	var want map[string][]string
	for range 20 {
		loads := placementfleet.NewLoads()
		loads.Set(types.NamespacedName{Namespace: "x", Name: "y"}, []string{"c00001", "c00002"})
		var jobs []Job
		for i := range 12 {
			p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("p", i),
				CreationTimestamp: metav1.NewTime(start.Add(time.Duration(i/3) * time.Second))}}
			p.Spec.NumberOfClusters = number(3)
			jobs = append(jobs, Job{Program: placementspec.Compile(&p.Spec), State: run.Snapshot{Now: start, Placement: p, Bindings: []string{"s1"}, Clusters: fleet}})
		}
		random.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
		got := map[string][]string{}
		if err := Round(t.Context(), loads, jobs, func(j Job, r *run.Result) error {
			got[j.State.Placement.Name] = r.Clusters
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		} else if !reflect.DeepEqual(got, want) {
			t.Fatalf("%v\n%v", got, want)
		}
		others := loads.Others(types.NamespacedName{})
		for i := range 20 {
			if n := others.Count(fmt.Sprintf("c%05d", i+1)); n < 1 || n > 3 {
				t.Fatalf("cluster %d is in %d decisions", i+1, n)
			}
		}
	}
}

// Loads has the same counts as a recount of all decisions.
func TestLoads_Random(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	loads, all := placementfleet.NewLoads(), map[types.NamespacedName][]string{}
	for range 2000 {
		placement := types.NamespacedName{Name: fmt.Sprint(random.IntN(12))}
		var clusters []string
		for range random.IntN(6) {
			clusters = append(clusters, fmt.Sprint(random.IntN(8)))
		}
		loads.Set(placement, clusters)
		slices.Sort(clusters)
		all[placement] = slices.Compact(clusters)
		self := types.NamespacedName{Name: fmt.Sprint(random.IntN(12))}
		counts, most := map[string]int{}, 0
		for other, names := range all {
			for _, name := range names {
				if other != self {
					counts[name]++
					most = max(most, counts[name])
				}
			}
		}
		got := loads.Others(self)
		if got.Most() != most {
			t.Fatalf("most %d, want %d", got.Most(), most)
		}
		for i := range 8 {
			if n := got.Count(fmt.Sprint(i)); n != counts[fmt.Sprint(i)] {
				t.Fatalf("%d: %d, want %d", i, n, counts[fmt.Sprint(i)])
			}
		}
	}
}
