// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/constraint"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

// fleet returns a node of every kind that the terms below distinguish. A text with commas equals each of its parts, and none of them.
func fleet(t testing.TB) []*Node {
	t.Helper()
	var nodes []*Node
	add := func(spec NodeSpec, purpose string) {
		if purpose != "" {
			spec.Policy.Properties = []constraint.Property{{Name: "purpose", Value: purpose}}
		}
		n, err := NewNode(spec)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	for _, purpose := range []string{"", "t", "u", "v", "t,u", "t,v", "u,v"} {
		for _, namespace := range []string{"abc", "xyz", "qq", "zz"} {
			for _, scope := range []Scope{ClusterScoped, NamespaceScoped} {
				add(NodeSpec{Name: "n", Type: Cluster, Facts: Facts{Arch: "amd64", Scope: scope, Namespace: namespace}}, purpose)
			}
		}
		add(NodeSpec{Name: "d", Type: Device, Facts: Facts{Arch: "amd64"}}, purpose)
	}
	return nodes
}

// The warnings on publication match what happens then: they are compared with every kind of node, for random policies. They are exact for namespaces,
// scopes and a property of one word; the exceptions are described in the design of constraints.
func TestAnalyze_MatchesDecisions(t *testing.T) {
	nodes := fleet(t)
	random := rand.New(rand.NewPCG(5, 6))
	one := func(list ...string) string { return list[random.IntN(len(list))] }
	term := func() string {
		switch random.IntN(5) {
		case 0:
			return api.PropertyKubernetesNamespaceScoped + " == " + one("true", "false")
		case 1:
			return "purpose " + one("==", "==", "!=") + " " + one("t", "u")
		case 2:
			return ns + ` in "` + one("abc,xyz", "abc", "xyz,qq") + `"`
		}
		return ns + " " + one("==", "==", "!=") + " " + one("abc", "xyz", "qq")
	}
	expression := func() string {
		text := term()
		for range random.IntN(4) {
			next := term()
			if random.IntN(3) == 0 {
				next = "(" + next + " " + one("AND", "OR") + " " + term() + ")"
			}
			text += " " + one("AND", "AND", "OR") + " " + next
		}
		return text
	}
	said := map[string]int{}
	for range 4000 {
		spec := DeploymentSpec{Name: "p", Org: "org", Service: "s", ClusterNamespace: one("", "abc", "abc"), Choices: []Choice{{Version: "1.0.0"}}}
		s := service("1.0.0")
		s.ForDevices = true
		if embedded := one("", "", "xyz"); embedded != "" {
			s.Contents.Namespaces = []string{embedded}
		}
		for range random.IntN(3) {
			spec.Policy.Constraints = append(spec.Policy.Constraints, expression())
		}
		if random.IntN(2) == 0 {
			s.Policy.Constraints = []string{expression()}
		}
		spec.Services = []Service{s}
		a, err := Analyze(spec)
		if err != nil {
			t.Fatal(err)
		}
		scoped, wide, devices := placed(t, nodes, spec)
		// These are the scoped nodes that the constraints allow, in any namespace.
		free := spec
		free.ClusterNamespace = ""
		free.Services = []Service{service("1.0.0")}
		free.Services[0].Policy = s.Policy
		wanted, _, _ := placed(t, nodes, free)
		nothing, excluded := scoped+wide == 0, wanted > 0 && scoped == 0
		if a.Nothing != nothing || a.NamespaceScopedExcluded != excluded || a.ClusterScopedExcluded != (wide == 0) {
			t.Fatalf("said %+v, and %d scoped, %d other nodes and %d devices get it, of %+v", a, scoped, wide, devices, spec)
		}
		if a.Nothing && devices > 0 {
			t.Fatalf("said that nothing can be deployed, and %d devices get it, of %+v", devices, spec)
		}
		if (a.Warning() != "") != (nothing || excluded) {
			t.Fatalf("warned %q", a.Warning())
		}
		switch {
		case nothing && excluded:
			said["nothing, by the namespace"]++
		case nothing:
			said["nothing"]++
		case excluded:
			said["excluded"]++
		default:
			said["none"]++
		}
	}
	t.Log(said)
	for _, what := range []string{"nothing, by the namespace", "nothing", "excluded", "none"} {
		if said[what] < 40 {
			t.Errorf("%q was said %d times only: the policies are too simple", what, said[what])
		}
	}
}

// placed counts the nodes that get it.
func placed(t testing.TB, nodes []*Node, spec DeploymentSpec) (scoped, wide, devices int) {
	t.Helper()
	d, err := NewDeployment(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		switch {
		case !Decide(n, d).Compatible:
		case n.nodeType == Device:
			devices++
		case n.facts.Scope == NamespaceScoped:
			scoped++
		default:
			wide++
		}
	}
	return scoped, wide, devices
}

// D22: the namespace in the archive itself is used, and all objects are deployed to the target namespace.
func TestDecide_RealArchive(t *testing.T) {
	const manifest = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: xyz}\n"
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	entries := tar.NewWriter(zipped)
	if err := entries.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "web.yaml", Mode: 0o644, Size: int64(len(manifest))}); err != nil {
		t.Fatal(err)
	}
	if _, err := entries.Write([]byte(manifest)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(entries.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	a, err := archive.ReadPacked(packed.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		world *world
		want  string
	}{{newWorld(ClusterScoped, "agent"), "xyz"}, {newWorld(NamespaceScoped, "abc").to("abc"), "abc"}} {
		test.world.deployment.Services[0].Contents = &a.Contents
		got := test.world.decide(t)
		expect(t, got, Fits, test.want)
		objects, err := a.Deliver(got.Namespace)
		if err != nil || len(objects) != 1 || objects[0].GetNamespace() != test.want {
			t.Errorf("got %v and %v, want one object in %s", objects, err, test.want)
		}
	}
}

// BenchmarkDecide is a check of one policy over 10,000 nodes.
func BenchmarkDecide(b *testing.B) {
	var nodes []*Node
	for i := range 10_000 {
		w := newWorld(NamespaceScoped, fmt.Sprintf("team-%d", i%50)).has("purpose", fmt.Sprint("p", i%7)).has("region", strings.Repeat("r", i%5+1))
		w.node.Policy.Constraints = []string{"openhorizon.service.name == s OR trusted == true"}
		n, err := NewNode(w.node)
		if err != nil {
			b.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	w := newWorld(NamespaceScoped, "").constraints(ns+` in "team-1,team-2,team-3" AND purpose == p3`, "region != rrrr")
	versions(&w.deployment, service("3.0.0", "elsewhere"), service("2.0.0"), service("1.0.0"))
	d, err := NewDeployment(w.deployment)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, n := range nodes {
			Decide(n, d)
		}
	}
}
