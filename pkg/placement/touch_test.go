// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
)

// A change that does not touch a placement has no effect on it, and a change with an effect touches it.
func TestTouches(t *testing.T) {
	before := managed("c1", "label:a=b", "label:group=canary", "claim:x=y", "cpu:1", "memory:1")
	for name, test := range map[string]struct {
		after   []string
		touches bool
	}{
		"nothing":            {[]string{"label:a=b", "label:group=canary", "claim:x=y", "cpu:1", "memory:1"}, false},
		"a label of nobody":  {[]string{"label:a=b", "label:group=canary", "label:o=o", "claim:x=y", "cpu:1", "memory:2"}, false},
		"a predicate":        {[]string{"label:a=c", "label:group=canary", "claim:x=y", "cpu:1", "memory:1"}, true},
		"a group":            {[]string{"label:a=b", "label:group=other", "claim:x=y", "cpu:1", "memory:1"}, true},
		"a topology":         {[]string{"label:a=b", "label:group=canary", "claim:x=z", "cpu:1", "memory:1"}, true},
		"a resource":         {[]string{"label:a=b", "label:group=canary", "claim:x=y", "cpu:2", "memory:1"}, true},
		"a taint":            {[]string{"label:a=b", "label:group=canary", "claim:x=y", "cpu:1", "memory:1", "taint:k=v:NoSelect"}, true},
		"a tolerated taint":  {[]string{"label:a=b", "label:group=canary", "claim:x=y", "cpu:1", "memory:1", "taint:t=v:NoSelect"}, false},
		"one for some time":  {[]string{"label:a=b", "label:group=canary", "claim:x=y", "cpu:1", "memory:1", "taint:s=v:NoSelect"}, true},
		"what does not show": {[]string{"label:a=b", "label:group=canary", "claim:x=y", "cpu:1", "memory:1", "taint:p=v:PreferNoSelect"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, before, managed("c2", "label:a=b"))
			seconds := int64(60)
			w.spec().Predicates = one(matchLabels("a=b"))
			w.spec().NumberOfClusters = number(2)
			w.spec().PrioritizerPolicy = exact(builtIn(cpu, 1))
			w.spec().Tolerations = []clusterv1beta1.Toleration{*tolerate("t", "Exists", "", ""), {Key: "s", Operator: "Exists", TolerationSeconds: &seconds}}
			w.spec().SpreadPolicy.SpreadConstraints = []clusterv1beta1.SpreadConstraintsTerm{over("Claim", "x", 1, clusterv1beta1.ScheduleAnyway)}
			w.spec().DecisionStrategy = groupsOf(intstr.IntOrString{}, "canary")
			w.schedule()
			was := w.explain()
			old, after, moved := w.fleet.SetCluster(managed("c1", test.after...))
			program := spec.Compile(w.spec())
			if got, _ := program.Touches(t.Context(), old, after, spec.Seen{Now: w.now, Scores: w.scores, Chosen: true}); got != test.touches || len(moved) > 0 {
				t.Errorf("touches: %t, moved: %v", got, moved)
			}
			if !test.touches {
				if now := w.explain(); !slices.Equal(now, was) {
					t.Errorf("%v\n%v", now, was)
				}
				if result := run.Schedule(t.Context(), program, w.state()); len(result.Steps) > 0 || !result.Again.Equal(w.last.Again) {
					t.Errorf("%+v", result)
				}
			}
		})
	}
}

func TestTouchesScore(t *testing.T) {
	w := newWorld(t, managed("c1", "label:a=b"), managed("c2"))
	score := w.score("other", "any", "x", 1)
	touches := func(cluster, name string) bool {
		touches, _ := spec.Compile(w.spec()).TouchesScore(t.Context(), w.fleet.Cluster(cluster), name, nil, score, spec.Seen{Now: w.now, Scores: w.scores})
		return touches
	}
	w.spec().NumberOfClusters = number(1)
	w.spec().Predicates = one(matchLabels("a=b"))
	w.spec().PrioritizerPolicy.Configurations = []clusterv1beta1.PrioritizerConfig{addOn("load", "x", 1), addOn("off", "x", 0)}
	if !touches("c1", "load") || touches("c2", "load") || touches("c1", "off") || touches("c1", "other") {
		t.Error("load matters, of clusters that match the predicate")
	}
	w.spec().NumberOfClusters = nil
	if touches("c1", "load") {
		t.Error("scores decide nothing where all are taken")
	}
	w.spec().Predicates = one(withCEL(anything, `managedCluster.scores("gpu").size() > 0`))
	if !touches("c2", "gpu") || touches("c2", "other") {
		t.Error("gpu is read by the predicate, and no other")
	}
	w.spec().Predicates = one(withCEL(anything, `managedCluster.scores(managedCluster.metadata.name).size() > 0`))
	if !touches("c2", "other") {
		t.Error("a name that is computed may be any")
	}
}

// A change of a cluster that is not chosen because others are better affects a placement if the cluster gets better, and otherwise only if the
// scores of others change.
func TestTouches_UnchosenClusters(t *testing.T) {
	const chosen, unchosen = "chosen", "unchosen"
	for name, test := range map[string]struct {
		cluster string
		after   []string
		spec    func(*clusterv1beta1.PlacementSpec)
		touches bool
	}{
		"falls out":                      {unchosen, []string{"cpu:2", "taint:k=v:NoSelect"}, nil, false},
		"falls out, and is chosen":       {chosen, []string{"cpu:3", "taint:k=v:NoSelect"}, nil, true},
		"has most":                       {unchosen, []string{"cpu:9"}, nil, true},
		"falls out by a label":           {unchosen, []string{"cpu:2", "label:a=c"}, nil, false},
		"leaves with the hub":            {unchosen, []string{"cpu:2", "deleting"}, nil, false},
		"falls out, and counts anyway":   {unchosen, []string{"taint:k=v:NoSelect"}, spreadOverZones, true},
		"falls out, and CEL was counted": {unchosen, []string{"taint:k=v:NoSelect"}, withTrue, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, managed(chosen, "label:a=b", "cpu:3"), managed("least", "label:a=b", "cpu:1"), managed(unchosen, "label:a=b", "cpu:2"),
				managed("out", "cpu:9"))
			w.spec().NumberOfClusters, w.spec().Predicates = number(1), one(matchLabels("a=b"))
			w.spec().PrioritizerPolicy = exact(builtIn(cpu, 1))
			if test.spec != nil {
				test.spec(w.spec())
			}
			w.expect(chosen)
			if !slices.ContainsFunc(test.after, func(s string) bool { return strings.HasPrefix(s, "label:") }) {
				test.after = append(test.after, "label:a=b")
			}
			deleting := slices.Contains(test.after, "deleting")
			now := managed(test.cluster, slices.DeleteFunc(test.after, func(s string) bool { return s == "deleting" })...)
			if deleting {
				now.DeletionTimestamp = &metav1.Time{Time: start}
			}
			before, after, _ := w.fleet.SetCluster(now)
			members, _, _ := w.fleet.Members("s1")
			seen := spec.Seen{Now: w.now, Scores: w.scores, Chosen: test.cluster == chosen, Others: slices.Values(members)}
			if got, _ := spec.Compile(w.spec()).Touches(t.Context(), before, after, seen); got != test.touches {
				t.Errorf("touches: %t", got)
			}
		})
	}
}

func spreadOverZones(s *clusterv1beta1.PlacementSpec) {
	s.SpreadPolicy.SpreadConstraints = []clusterv1beta1.SpreadConstraintsTerm{over("Label", "zone", 1, clusterv1beta1.ScheduleAnyway)}
}

func withTrue(s *clusterv1beta1.PlacementSpec) {
	s.Predicates = one(withCEL(matchLabels("a=b"), "true"))
}

// The clusters with the least or the most of a resource scale the scores of all others.
func TestTouches_ScaledScores(t *testing.T) {
	for name, test := range map[string]struct {
		others  []string
		touches bool
	}{
		"the least":          {[]string{"2", "3"}, true},
		"as the least":       {[]string{"1", "3"}, false},
		"between":            {[]string{"0", "3"}, false},
		"the most":           {[]string{"0"}, true},
		"as the only other":  {[]string{"1"}, false},
		"one that falls out": {[]string{"3", "0 taint:k=v:NoSelect"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, managed("c", "cpu:1"))
			w.spec().NumberOfClusters, w.spec().PrioritizerPolicy = number(0), exact(builtIn(cpu, 1))
			for i, other := range test.others {
				has, taint, tainted := strings.Cut(other, " ")
				parts := []string{"cpu:" + has}
				if tainted {
					parts = append(parts, taint)
				}
				w.add(managed(fmt.Sprint("o", i), parts...))
			}
			before, after, _ := w.fleet.SetCluster(managed("c", "cpu:1", "taint:k=v:NoSelect"))
			members, _, _ := w.fleet.Members("s1")
			program := spec.Compile(w.spec())
			if got, _ := program.Touches(t.Context(), before, after, spec.Seen{Now: w.now, Others: slices.Values(members)}); got != test.touches {
				t.Errorf("touches: %t", got)
			}
			if got, _ := program.Touches(t.Context(), before, after, spec.Seen{Now: w.now}); !got {
				t.Error("nothing is known of others")
			}
		})
	}
}

// A score that is not higher adds no cluster to the decisions.
func TestTouchesScore_UnchosenClusters(t *testing.T) {
	w := newWorld(t, managed("c1"), managed("c2"))
	score := func(value int32) *clusterv1alpha1.AddOnPlacementScore { return w.score("c2", "load", "x", value) }
	ends := score(-5)
	ends.Status.ValidUntil = &metav1.Time{Time: start.Add(time.Hour)}
	for name, test := range map[string]struct {
		before, after *clusterv1alpha1.AddOnPlacementScore
		weight        int32
		chosen        bool
		touches       bool
	}{
		"falls":               {score(5), score(4), 1, false, false},
		"falls, chosen":       {score(5), score(4), 1, true, true},
		"rises":               {score(4), score(5), 1, false, true},
		"falls, and is worth": {score(5), score(4), -1, false, true},
		"rises, and is not":   {score(4), score(5), -1, false, false},
		"goes":                {score(5), nil, 1, false, false},
		"goes, was below":     {score(-5), nil, 1, false, true},
		"comes":               {nil, score(-5), 1, false, false},
		"beyond the bound":    {score(100), score(200), 1, false, false},
		"comes for some time": {nil, ends, 1, false, true},
		"has come to its end": {ends, score(-6), 1, false, true},
	} {
		w.spec().NumberOfClusters = number(1)
		w.spec().PrioritizerPolicy = exact(addOn("load", "x", test.weight))
		got, _ := spec.Compile(w.spec()).TouchesScore(t.Context(), w.fleet.Cluster("c2"), "load", test.before, test.after,
			spec.Seen{Now: start, Scores: w.scores, Chosen: test.chosen})
		if got != test.touches {
			t.Errorf("%s: touches: %t", name, got)
		}
	}
}

// Whatever happens, a placement that no change has touched has the same result when it is run again.
func TestHub_TouchesAll(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 9))
		w := newHubWorld(t)
		spec := func(s *clusterv1beta1.PlacementSpec) {
			*s = randomSpec(random)
			// Balance follows the other placements only in a run that has another reason.
			s.PrioritizerPolicy.Mode = clusterv1beta1.PrioritizerPolicyModeExact
			s.PrioritizerPolicy.Configurations = append(s.PrioritizerPolicy.Configurations, builtIn("Steady", int32(random.IntN(2))))
			if random.IntN(3) == 0 {
				s.ClusterSets = []string{"s1"}
			}
			if random.IntN(4) == 0 {
				s.Predicates = one(withCEL(anything, `managedCluster.scores("a").exists(s, s.value > 0)`))
			} else if random.IntN(2) == 0 {
				// Many clusters pass the filters, and few are chosen.
				s.NumberOfClusters, s.SpreadPolicy.SpreadConstraints = number(int32(random.IntN(6))), nil
			}
		}
		for i := range 9 {
			ns, n := fmt.Sprint("ns", i%3), fmt.Sprint(i/3)
			w.SetSet(labelSet("s"+n, &metav1.LabelSelector{MatchLabels: map[string]string{"zone": n}}))
			w.SetBinding(ns, "s"+n)
			w.place(ns, "p"+n, spec)
		}
		for i := range 30 {
			w.SetCluster(t.Context(), randomCluster(random, i), w.now)
		}
		w.round()
		for step := range 120 {
			name := fmt.Sprint(random.IntN(3))
			switch random.IntN(14) {
			case 0:
				w.place("ns"+name, "p"+fmt.Sprint(random.IntN(3)), spec)
			case 1:
				w.SetBinding("ns"+name, fmt.Sprint("s", random.IntN(3)))
			case 2:
				w.DeleteBinding("ns"+name, fmt.Sprint("s", random.IntN(3)))
			case 3:
				w.SetSet(labelSet("s"+name, &metav1.LabelSelector{MatchLabels: map[string]string{"zone": fmt.Sprint(random.IntN(4))}}))
			case 4:
				w.DeleteSet("s" + name)
			case 5:
				w.DeleteCluster(fmt.Sprintf("c%03d", random.IntN(30)))
			case 6:
				score := newWorld(t).score(fmt.Sprintf("c%03d", random.IntN(30)), "a", "b", int32(random.IntN(100)-50))
				if random.IntN(4) == 0 {
					score.Status.ValidUntil = &metav1.Time{Time: w.now.Add(time.Duration(random.IntN(300)) * time.Second)}
				}
				if random.IntN(4) > 0 {
					w.SetScore(t.Context(), score, w.now)
				} else {
					w.DeleteScore(t.Context(), types.NamespacedName{Namespace: score.Namespace, Name: score.Name}, w.now)
				}
			case 7:
				w.SetCluster(t.Context(), randomCluster(random, random.IntN(30)), w.now)
			default:
				// One change of a cluster, which stays in its sets.
				after := randomCluster(random, random.IntN(30))
				if have := w.fleet.Cluster(after.Name); have != nil {
					now := have.Object.DeepCopy()
					switch random.IntN(3) {
					case 0:
						now.Spec.Taints, now.DeletionTimestamp = after.Spec.Taints, after.DeletionTimestamp
					case 1:
						now.Status = after.Status
					case 2:
						now.Labels["group"] = after.Labels["group"]
					}
					after = now
				}
				w.SetCluster(t.Context(), after, w.now)
			}
			if random.IntN(3) > 0 {
				continue
			}
			w.now = w.now.Add(time.Minute)
			w.round()
			// A decision that is written in two steps, as its clusters move, is checked once more.
			if again := w.round(); len(again) > 0 {
				t.Fatalf("seed %d, step %d: written twice: %v", seed, step, again)
			}
			for key, s := range w.placements {
				result := run.Schedule(t.Context(), s.program, w.State(s.placement, w.now))
				if w.dirty[key] || len(result.Steps) > 0 || !equality.Semantic.DeepEqual(result.Status, s.placement.Status) {
					t.Fatalf("seed %d, step %d: %s: %+v\n%+v\n%+v", seed, step, key, result.Steps, result.Status, s.placement.Status)
				}
			}
			owners := map[types.NamespacedName]bool{}
			for _, key := range w.owner {
				owners[key] = true
			}
			if len(owners) != len(w.placements) {
				t.Fatal(slices.Collect(maps.Keys(owners)))
			}
		}
	}
}
