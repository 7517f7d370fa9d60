// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/constraint"
	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

// fleet is a large world: namespaces that reach a set of their own and one that all share, and policies that are for one of 25 purposes.
type fleet struct {
	*world
	nodes, policies, namespaces int
}

func newFleet(nodes, policies, namespaces int) *fleet {
	f := &fleet{newWorld(), nodes, policies, namespaces}
	for i := range nodes {
		f.world.nodes[nodeName(i)] = f.node(i, 0)
		f.sets[nodeName(i)] = []string{fmt.Sprintf("set-%d", i%namespaces)}
		if i%100 == 0 {
			f.sets[nodeName(i)] = append(f.sets[nodeName(i)], "shared")
		}
	}
	for i := range namespaces {
		f.bindings[[2]string{fmt.Sprintf("team-%d", i), fmt.Sprintf("set-%d", i)}] = true
		f.bindings[[2]string{fmt.Sprintf("team-%d", i), "shared"}] = true
	}
	for i := range policies {
		key, specs := f.policy(i, 0)
		f.deployments[key] = specs
		service := ServiceKey{specs[0].Org, specs[0].Service}
		f.services[service] = map[version]edge.Service{}
		for _, number := range []string{"1.0.0", "2.0.0"} {
			f.services[service][version{number, "amd64"}] = edge.Service{Org: service.Org, Name: service.Name, Version: number, Arch: "amd64", ForClusters: true,
				Contents: &archive.Contents{Objects: []archive.Object{{Group: "apps", Kind: "Deployment", Name: "web", Scope: archive.Namespaced}}}}
		}
	}
	return f
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

func (f *fleet) node(i, edit int) edge.NodeSpec {
	scope := edge.ClusterScoped
	if i%4 > 0 {
		scope = edge.NamespaceScoped
	}
	return edge.NodeSpec{Name: nodeName(i), Type: edge.Cluster,
		Policy: edge.Policy{Properties: []constraint.Property{
			{Name: "purpose", Value: fmt.Sprintf("p%d", (i/f.namespaces+edit)%25)}, {Name: "region", Value: fmt.Sprintf("r%d", i%7)}}},
		Facts: edge.Facts{Arch: "amd64", CPU: 8, Memory: 16000, KubernetesVersion: "v1.33.1", Scope: scope, Namespace: "agent", ClusterID: fmt.Sprintf("cluster-%d", i/2)}}
}

func (f *fleet) policy(i, edit int) (Key, []edge.DeploymentSpec) {
	ns := fmt.Sprintf("team-%d", i%f.namespaces)
	name := fmt.Sprintf("policy-%d", i)
	return Key{Namespace: ns, Name: name}, []edge.DeploymentSpec{{Name: ns + "/" + name, Org: ns, Service: name, Choices: []edge.Choice{{Version: "2.0.0", Priority: 1}, {Version: "1.0.0", Priority: 2}},
		Policy: edge.Policy{Constraints: []string{fmt.Sprintf("purpose == p%d AND openhorizon.memory > 2048", (i/f.namespaces+edit)%25)}}}}
}

// tell adds everything to an engine.
func (f *fleet) tell(tb testing.TB, e *Engine) {
	tb.Helper()
	for _, versions := range f.services {
		for _, s := range versions {
			e.SetService(s)
		}
	}
	for name, sets := range f.sets {
		e.SetSets(name, sets)
		if err := e.SetNode(f.world.nodes[name]); err != nil {
			tb.Fatal(err)
		}
	}
	for binding := range f.bindings {
		e.Bind(binding[0], binding[1])
	}
	for key, specs := range f.deployments {
		if err := e.SetDeployment(key, specs); err != nil {
			tb.Fatal(err)
		}
	}
	e.Changed()
}

// changes are single changes; each call makes a new one.
var changes = []struct {
	name string
	make func(testing.TB, *fleet, *Engine, int)
	most int
}{
	{"policy edit", func(tb testing.TB, f *fleet, e *Engine, i int) {
		if err := e.SetDeployment(f.policy(i%f.policies, 1+i/f.policies)); err != nil {
			tb.Fatal(err)
		}
	}, 1},
	{"node change", func(tb testing.TB, f *fleet, e *Engine, i int) {
		if err := e.SetNode(f.node(i%f.nodes, 1+i/f.nodes)); err != nil {
			tb.Fatal(err)
		}
	}, 1},
	{"1000 node changes", func(tb testing.TB, f *fleet, e *Engine, i int) {
		for j := range 1000 {
			if err := e.SetNode(f.node((i*1000+j)%f.nodes, 1+(i*1000+j)/f.nodes)); err != nil {
				tb.Fatal(err)
			}
		}
	}, 1000},
}

// One change judges few of all pairs. Times are in the benchmark; the number of judgments does not depend on the machine.
func TestEngine_EvaluatesOnlyAffectedPairs(t *testing.T) {
	f := newFleet(2000, 200, 10)
	e := New()
	f.tell(t, e)
	pairs := 0
	for _, counts := range f.everything().counts {
		pairs += counts.Reached
	}
	for _, change := range changes[:2] {
		e.Decided = 0
		change.make(t, f, e, 3)
		if e.Decided == 0 || e.Decided*50 > pairs {
			t.Errorf("%s judged %d pairs of %d, want some, and at most a fiftieth", change.name, e.Decided, pairs)
		}
	}
	// A property that no constraint names costs nothing.
	e.Decided = 0
	spec := f.node(3, 1)
	spec.Policy.Properties = append(spec.Policy.Properties, constraint.Property{Name: "color", Value: "red"})
	if err := e.SetNode(spec); err != nil || e.Decided != 0 {
		t.Errorf("a property that no constraint names judged %d pairs, %v", e.Decided, err)
	}
}

// BenchmarkEngine has 10,000 nodes and 1,000 policies in 50 namespaces: it evaluates everything, and measures the cost of changes.
func BenchmarkEngine(b *testing.B) {
	f := newFleet(10_000, 1_000, 50)
	b.Run("everything", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f.everything()
		}
	})
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f.tell(b, New())
		}
	})
	e := New()
	f.tell(b, e)
	for _, change := range changes {
		b.Run(change.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				change.make(b, f, e, i)
				e.Changed()
			}
		})
	}
}
