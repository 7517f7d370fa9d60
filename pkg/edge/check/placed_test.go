// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
	"github.com/clusterhub/clusterhub/pkg/edge/engine"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
)

// A check returns what the controllers place, which use the engine.
func TestAnswer_MatchesPlacements(t *testing.T) {
	placed, kept, away := 0, 0, 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 7))
		some := func(of ...string) string { return of[random.IntN(len(of))] }
		e := engine.New()
		e.Bind("shop", "blue")
		var services []edge.Service
		for _, name := range []string{"web", "db"} {
			for _, version := range []string{"1.0.0", "2.0.0"} {
				s := service(name, version)
				s.Arch = some("amd64", "*", "arm64")
				if embedded := some("", "", "abc", "xyz"); embedded != "" {
					s.Contents.Namespaces = []string{embedded}
				}
				if random.IntN(4) == 0 {
					s.Contents.Objects = append(s.Contents.Objects, archive.Object{Kind: "K", Name: "o", Scope: archive.Cluster})
				}
				services = append(services, s)
				e.SetService(s)
			}
		}
		nodes := map[string]Candidate{}
		var names []string
		for i := range 10 {
			n := node(fmt.Sprint("n", i), edge.Scope(some("cluster", "namespace", "namespace", "")), some("abc", "abc", "xyz", ""))
			n.Facts.Arch, n.Facts.ClusterID, n.Pattern = some("amd64", "amd64", "arm64", ""), some("", "x", "x", "y"), some("", "", "", "shop/all")
			n.Policy.Properties = model.Node("", &api.EdgeNodeSpec{Policy: api.Policy{Properties: []api.Property{
				{Name: "purpose", Value: api.Value{Type: api.ValueString, String: some("t", "u")}}}}}, &api.EdgeNodeStatus{}).Policy.Properties
			if err := e.SetNode(n); err != nil {
				t.Fatal(err)
			}
			e.SetSets(n.Name, []string{"blue"})
			nodes[n.Name] = Read(n)
			names = append(names, n.Name)
		}
		questions := map[engine.Key]*Question{}
		for i := range 4 {
			p := policy(some("", "", "abc"), [][]string{nil, nil, {"purpose == t"}}[random.IntN(3)]...)
			p.Service.Name = some("web", "db")
			p.Service.ServiceVersions = versions("2.0.0", "1.0.0", "3.0.0")[:1+random.IntN(3)]
			key := engine.Key{Namespace: "shop", Name: fmt.Sprint("p", i)}
			questions[key] = &Question{Namespace: "shop", Name: key.Name, Policy: p, Services: services}
			if err := e.SetDeployment(key, []edge.DeploymentSpec{model.Policy("shop", key.Name, p, nil)}); err != nil {
				t.Fatal(err)
			}
		}
		key := engine.Key{Namespace: "shop", Name: "all", Pattern: true}
		of := pattern(some("", "", "abc"), "web", "db")
		questions[key] = &Question{Namespace: "shop", Name: "all", Pattern: of, Services: services}
		if err := e.SetDeployment(key, model.PatternServices("shop", "all", of, nil)); err != nil {
			t.Fatal(err)
		}
		for pairs, _ := e.Changed(); len(pairs) > 0; pairs, _ = e.Changed() {
			for _, pair := range pairs {
				e.SetPlaced(pair, e.Desired(pair))
			}
		}

		var there []*edge.Placement
		wanted := map[engine.Pair]string{}
		for key := range questions {
			for _, name := range names {
				pair := engine.Pair{Key: key, Node: name}
				wants := e.Desired(pair)
				wanted[pair] = inShort(wants)
				if len(wants) == 0 {
					continue
				}
				p := &api.EdgePlacement{Spec: api.EdgePlacementSpec{Node: name, Origin: api.PlacementOrigin{Kind: api.KindDeploymentPolicy, Name: key.Name}}}
				if key.Pattern {
					p.Spec.Origin.Kind = api.KindDeploymentPattern
				}
				p.Namespace = key.Namespace
				for _, w := range wants {
					p.Spec.Services = append(p.Spec.Services, api.PlacedService{Org: w.Org, Name: w.Name, Version: w.Version, Arch: w.Arch, TargetNamespace: w.Namespace})
				}
				list, err := model.Placed(p, nodes[name].Node)
				if err != nil {
					t.Fatal(err)
				}
				there = append(there, list...)
			}
		}
		for key, q := range questions {
			q.Placed = there
			for _, name := range names {
				q.Nodes = append(q.Nodes, nodes[name])
			}
			status := answer(t, q)
			for _, n := range status.Nodes {
				pair := engine.Pair{Key: key, Node: n.Node}
				if key.Pattern && (nodes[n.Node].Node.Pattern() != "shop/all" || n.Reason == string(PatternRefused)) {
					continue // The check judges all nodes as if they had the pattern, and rejects what admission rejects.
				}
				var says []engine.Placed
				for _, s := range n.Services {
					if s.Deployable {
						says = append(says, engine.Placed{ServiceKey: engine.ServiceKey{Org: s.Org, Name: s.Name}, Version: s.Version, Namespace: s.TargetNamespace})
					}
					if s.Reason == string(edge.ThereAlready) {
						kept++
					}
				}
				if got := inShort(says); got != wanted[pair] {
					t.Fatalf("world %d, %v: the check says %q (%s), and %q is placed", seed, pair, got, n.Message, wanted[pair])
				} else if got != "" {
					placed++
				} else {
					away++
				}
			}
		}
	}
	if placed < 1000 || kept < 300 || away < 1000 {
		t.Errorf("%d placed, %d there already, %d kept away: the worlds are too simple", placed, kept, away)
	}
}

func inShort(list []engine.Placed) string {
	var all []string
	for _, p := range list {
		all = append(all, fmt.Sprint(p.Org, "/", p.Name, " ", p.Version, "@", p.Namespace))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
