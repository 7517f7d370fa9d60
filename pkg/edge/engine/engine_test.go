// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

// world is the input of an engine.
type world struct {
	nodes       map[string]edge.NodeSpec
	sets        map[string][]string
	bindings    map[[2]string]bool
	services    map[ServiceKey]map[version]edge.Service
	deployments map[Key][]edge.DeploymentSpec
	placed      map[Pair][]Placed
	failed      map[Pair][]edge.Failed
}

func newWorld() *world {
	return &world{nodes: map[string]edge.NodeSpec{}, sets: map[string][]string{}, bindings: map[[2]string]bool{},
		services: map[ServiceKey]map[version]edge.Service{}, deployments: map[Key][]edge.DeploymentSpec{}, placed: map[Pair][]Placed{},
		failed: map[Pair][]edge.Failed{}}
}

// outcome is the output of an engine.
type outcome struct {
	wanted map[Pair][]Placed
	counts map[Key]Counts
}

// everything evaluates the whole world, without an index and without state.
func (w *world) everything() outcome {
	o := outcome{map[Pair][]Placed{}, map[Key]Counts{}}
	nodes := map[string]*edge.Node{}
	for name, spec := range w.nodes {
		if n, err := edge.NewNode(spec); err == nil {
			nodes[name] = n
		}
	}
	type judged struct {
		pair      Pair
		reason    edge.Reason
		services  []ServiceKey
		placement []*edge.Placement
	}
	var all []*judged
	var placements []*edge.Placement
	for key, specs := range w.deployments {
		counts := Counts{Excluded: map[edge.Reason]int{}}
		var compiled []*edge.Deployment
		for _, s := range specs {
			for _, service := range w.services[ServiceKey{s.Org, s.Service}] {
				s.Services = append(s.Services, service)
			}
			if d, err := edge.NewDeployment(s); err == nil {
				compiled = append(compiled, d)
			}
		}
		for name, n := range nodes {
			if !slices.ContainsFunc(w.sets[name], func(set string) bool { return w.bindings[[2]string{key.Namespace, set}] }) {
				continue
			}
			counts.Reached++
			if len(compiled) < len(specs) {
				continue
			}
			var decisions []edge.Decision
			compatible := false
			if key.Pattern {
				decisions, compatible = edge.DecidePattern(n, compiled, w.failed[Pair{key, name}]...)
			} else {
				decisions = []edge.Decision{edge.Decide(n, compiled[0], w.failed[Pair{key, name}]...)}
				compatible = decisions[0].Compatible
			}
			j := &judged{pair: Pair{key, name}, reason: edge.ThereAlready}
			all = append(all, j)
			if !compatible {
				j.reason = Why(decisions)
				continue
			}
			if n.Type() == edge.Device {
				j.reason = NotDelivered
				continue
			}
			for i, decision := range decisions {
				if !decision.Compatible {
					continue
				}
				service := ServiceKey{specs[i].Org, specs[i].Service}
				p := &edge.Placement{Node: n, Deployment: compiled[i], Decision: decision,
					Placed: slices.ContainsFunc(w.placed[j.pair], func(p Placed) bool { return p.ServiceKey == service && p.Namespace == decision.Namespace })}
				placements = append(placements, p)
				j.placement, j.services = append(j.placement, p), append(j.services, service)
			}
		}
		o.counts[key] = counts
	}
	edge.Once(placements)
	for _, j := range all {
		counts := o.counts[j.pair.Key]
		for i, p := range j.placement {
			if p.Decision.Compatible {
				j.reason = edge.Fits
				o.wanted[j.pair] = append(o.wanted[j.pair], Placed{j.services[i], p.Decision.Version, p.Decision.Arch, p.Decision.Namespace})
			}
		}
		if j.reason == edge.Fits {
			counts.Selected++
		} else {
			counts.Excluded[j.reason]++
		}
		o.counts[j.pair.Key] = counts
	}
	return o
}

// says returns the output of the engine for the same.
func says(e *Engine) outcome {
	o := outcome{map[Pair][]Placed{}, map[Key]Counts{}}
	for key, d := range e.deployments {
		o.counts[key] = e.Counts(key)
		for n := range d.results {
			if wanted := e.Desired(Pair{key, n.name}); len(wanted) > 0 {
				o.wanted[Pair{key, n.name}] = wanted
			}
		}
	}
	return o
}

// Whatever happens, in any order, the engine returns the same as an evaluation of everything, and every difference is among the changes that it
// reports.
func TestEngine_MatchesFullEvaluation(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(100) {
		m, w, e := maker{rand.New(rand.NewPCG(seed, 1)), map[Pair]bool{}}, newWorld(), New()
		before := outcome{map[Pair][]Placed{}, map[Key]Counts{}}
		for i := range 200 {
			what := m.step(w, e)
			want, got := w.everything(), says(e)
			if !reflect.DeepEqual(got.wanted, want.wanted) {
				t.Fatalf("seed %d, step %d, %s: wanted is %v, and evaluating everything says %v", seed, i, what, got.wanted, want.wanted)
			}
			if !reflect.DeepEqual(got.counts, want.counts) {
				t.Fatalf("seed %d, step %d, %s: counts are %v, and evaluating everything says %v", seed, i, what, got.counts, want.counts)
			}
			pairs, keys := e.Changed()
			for _, pair := range pairs {
				m.pending[pair] = true
			}
			for pair := range union(before.wanted, got.wanted) {
				if !slices.Equal(before.wanted[pair], got.wanted[pair]) && !slices.Contains(pairs, pair) {
					t.Fatalf("seed %d, step %d, %s: %v is not among what has changed", seed, i, what, pair)
				}
			}
			for key := range union(before.counts, got.counts) {
				if !reflect.DeepEqual(before.counts[key], got.counts[key]) && !slices.Contains(keys, key) {
					t.Fatalf("seed %d, step %d, %s: %v is not among what has changed", seed, i, what, key)
				}
			}
			before = got
			seen["wanted"] += len(got.wanted)
			for _, c := range got.counts {
				for reason, n := range c.Excluded {
					seen[string(reason)] += n
				}
			}
		}
		w.takeAway(e)
		if left := len(e.nodes) + len(e.classes) + len(e.byPattern) + len(e.index) + len(e.setsOf) + len(e.members) + len(e.bound) + len(e.namespaces) +
			len(e.services) + len(e.users) + len(e.deployments) + len(e.placed) + len(e.failed) + len(e.sites) + len(e.crowded); left > 0 {
			t.Fatalf("seed %d: %d things are kept of a world that is empty", seed, left)
		}
	}
	t.Log(seen)
	for _, what := range strings.Fields("wanted ThereAlready PolicyConstraint ServiceConstraint NodeConstraint OtherPattern HasPattern ArchMismatch " +
		"ClusterObjects NotDelivered VersionMissing ScopeUnknown OtherClusterNamespace PatternOtherNamespace") {
		if seen[what] < 20 {
			t.Errorf("%s was seen %d times only: the worlds are too simple", what, seen[what])
		}
	}
}

func union[K comparable, V any](a, b map[K]V) map[K]bool {
	all := map[K]bool{}
	for k := range a {
		all[k] = true
	}
	for k := range b {
		all[k] = true
	}
	return all
}

// It may become known only later that two agents are in one cluster. What is placed on one of them stays, and the other's is no longer desired.
func TestEngine_TwoNodesOfOneCluster(t *testing.T) {
	f, e := newFleet(2, 1, 1), New()
	for i := range 2 {
		spec := f.node(1, 0)
		spec.Name, spec.Facts.ClusterID = nodeName(i), ""
		f.world.nodes[spec.Name] = spec
	}
	key, specs := f.policy(0, 0)
	specs[0].Policy.Constraints = nil
	f.deployments[key] = specs
	f.tell(t, e)
	for i := range 2 {
		pair := Pair{key, nodeName(i)}
		if wanted := e.Desired(pair); len(wanted) != 1 {
			t.Fatalf("%v is to have %v", pair, wanted)
		}
	}
	second := Pair{key, nodeName(1)}
	e.SetPlaced(second, e.Desired(second))
	for i := range 2 {
		spec := f.world.nodes[nodeName(i)]
		spec.Facts.ClusterID = "one"
		if err := e.SetNode(spec); err != nil {
			t.Fatal(err)
		}
	}
	if wanted, reason := e.Desired(Pair{key, nodeName(0)}), e.Reason(Pair{key, nodeName(0)}); len(wanted) > 0 || reason != edge.ThereAlready {
		t.Errorf("the first node is to have %v for the reason %s, and the second has it already", wanted, reason)
	}
	if wanted := e.Desired(second); len(wanted) != 1 {
		t.Error("the node that has it loses it")
	}
}

// A version that has failed on a node is replaced by the next one of its service, in a policy and in a pattern, and for that service alone.
func TestEngine_FallsBackToNextVersion(t *testing.T) {
	for _, pattern := range []bool{false, true} {
		e, key := New(), Key{"a", pattern, "p"}
		pair := Pair{key, "n"}
		spec := edge.NodeSpec{Name: "n", Type: edge.Cluster, Facts: edge.Facts{Arch: "amd64", Namespace: "abc", Scope: edge.ClusterScoped}}
		var specs []Spec
		for _, service := range []string{"s1", "s2"} {
			for _, version := range []string{"1.0.0", "2.0.0"} {
				e.SetService(edge.Service{Org: "a", Name: service, Version: version, Arch: edge.AnyArch, ForClusters: true, Contents: &archive.Contents{}})
			}
			specs = append(specs, Spec{Name: "a/p", Org: "a", Service: service, Pattern: pattern, Choices: []edge.Choice{{Version: "2.0.0", Priority: 1}, {Version: "1.0.0", Priority: 2}}})
		}
		if pattern {
			spec.Pattern = "a/p"
		} else {
			specs = specs[:1]
		}
		if err := errors.Join(e.SetNode(spec), e.SetDeployment(key, specs)); err != nil {
			t.Fatal(err)
		}
		e.SetSets("n", []string{"set"})
		e.Bind("a", "set")
		expect := func(want string, failed ...edge.Failed) {
			t.Helper()
			e.SetFailed(pair, failed)
			var got []string
			for _, p := range e.Desired(pair) {
				got = append(got, p.Version)
			}
			if want := strings.Fields(want)[:len(specs)]; !slices.Equal(got, want) {
				t.Errorf("pattern %t: wanted are %q, want %q", pattern, got, want)
			}
		}
		expect("2.0.0 2.0.0")
		expect("2.0.0 2.0.0", edge.Failed{Org: "b", Service: "s1", Version: "2.0.0"})
		expect("1.0.0 2.0.0", edge.Failed{Org: "a", Service: "s1", Version: "2.0.0"})
		expect("2.0.0 2.0.0", edge.Failed{Org: "a", Service: "s1", Version: "2.0.0"}, edge.Failed{Org: "a", Service: "s1", Version: "1.0.0"})
		expect("2.0.0 2.0.0")
	}
}
