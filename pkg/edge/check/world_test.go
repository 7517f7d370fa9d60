// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
)

// For any policy, pattern and nodes, the check returns the same as Decide.
func TestAnswer_MatchesDecide(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	some := func(list ...string) string { return list[random.IntN(len(list))] }
	count := map[edge.Reason]int{}
	for range 600 {
		var services []edge.Service
		for _, name := range []string{"web", "db"} {
			for _, version := range []string{"1.0.0", "2.0.0"} {
				s := service(name, version)
				if embedded := some("", "", "abc", "xyz"); embedded != "" {
					s.Contents.Namespaces = []string{embedded}
				}
				s.Arch = some("amd64", "amd64", "arm64", "*")
				if random.IntN(3) == 0 {
					s.Contents.Objects = append(s.Contents.Objects, archive.Object{Kind: "K", Name: "o", Scope: archive.Cluster})
				}
				services = append(services, s)
			}
		}
		q := &Question{Namespace: "shop", Name: "p", Services: services, Limit: 1 + random.IntN(12)}
		var specs []edge.DeploymentSpec
		if random.IntN(2) == 0 {
			q.Policy = policy(some("", "abc"), [][]string{nil, {"purpose == t"}}[random.IntN(2)]...)
			q.Policy.Service.ServiceVersions = versions("2.0.0", "1.0.0", "3.0.0")[:1+random.IntN(3)]
			specs = []edge.DeploymentSpec{model.Policy("shop", "p", q.Policy, services)}
		} else {
			q.Pattern = pattern(some("", "", "abc"), "web", "db")
			specs = model.PatternServices("shop", "p", q.Pattern, services)
		}
		var deployments []*edge.Deployment
		for _, spec := range specs {
			d, err := edge.NewDeployment(spec)
			if err != nil {
				t.Fatal(err)
			}
			deployments = append(deployments, d)
		}
		var placements []*edge.Placement
		var all [][]edge.Decision
		for i := range 12 {
			n := node(fmt.Sprintf("n%02d", i), edge.Scope(some("cluster", "namespace", "namespace", "")), some("abc", "abc", "xyz", ""))
			n.Facts.Arch, n.Facts.ClusterID = some("amd64", "amd64", "arm64", ""), some("", "x", "y", "z")
			n.Type = edge.Type(some("cluster", "cluster", "cluster", "device"))
			if q.Policy != nil {
				n.Pattern = some("", "", "", "shop/p")
			}
			if purpose := some("", "t"); purpose != "" {
				n.Policy.Properties = model.Node("", &api.EdgeNodeSpec{Policy: api.Policy{Properties: []api.Property{
					{Name: "purpose", Value: api.Value{Type: api.ValueString, String: purpose}}}}}, &api.EdgeNodeStatus{}).Policy.Properties
			}
			q.Nodes = append(q.Nodes, Read(n))
			var decisions []edge.Decision
			if q.Policy != nil {
				decisions = []edge.Decision{edge.Decide(q.Nodes[i].Node, deployments[0])}
			} else {
				n.Pattern = "shop/p"
				decisions, _ = edge.DecidePattern(Read(n).Node, deployments)
			}
			all = append(all, decisions)
			for j := range decisions {
				placements = append(placements, &edge.Placement{Node: q.Nodes[i].Node, Deployment: deployments[j], Decision: decisions[j]})
			}
		}
		edge.Once(placements)
		selected := int32(0)
		for i := range all {
			something := false
			for j := range all[i] {
				all[i][j] = placements[i*len(deployments)+j].Decision
				something = something || all[i][j].Compatible
			}
			if something {
				selected++
			}
		}
		slices.Reverse(q.Nodes)
		told := 0
		for {
			status := answer(t, q)
			excluded := int32(0)
			for _, e := range status.Excluded {
				excluded += e.Nodes
			}
			if status.Selected != selected || status.Selected+excluded != 12 || status.Deployable != (selected > 0) {
				if len(status.Nodes) > 0 && status.Nodes[0].Reason == string(PatternRefused) {
					told = 12
					break
				}
				t.Fatalf("%d nodes are selected and %d excluded, want %d selected", status.Selected, excluded, selected)
			}
			for _, n := range status.Nodes {
				for j, s := range n.Services {
					d := all[told][j]
					count[d.Reason]++
					if s.Deployable != d.Compatible || s.Version != d.Version || s.TargetNamespace != d.Namespace || !d.Compatible && s.Reason != string(d.Reason) {
						t.Fatalf("%s: got %+v, want %+v", n.Node, s, d)
					}
				}
				told++
			}
			q.Continue = status.Continue
			if q.Continue == "" {
				break
			}
		}
		if told != 12 {
			t.Fatalf("told of %d nodes", told)
		}
	}
	for _, reason := range []edge.Reason{edge.Fits, edge.ThereAlready, edge.PartOfPattern, edge.ClusterObjects, edge.HasPattern, edge.PolicyConstraint, edge.ScopeUnknown} {
		if count[reason] < 50 {
			t.Errorf("%s was said %d times only: the worlds are too simple", reason, count[reason])
		}
	}
}

// BenchmarkAnswer is a check of one policy over 10,000 nodes that are already parsed: less than 100 ms.
func BenchmarkAnswer(b *testing.B) {
	var nodes []Candidate
	for i := range 10_000 {
		n := node(fmt.Sprintf("n%05d", i), edge.NamespaceScoped, fmt.Sprint("team-", i%50))
		n.Facts.ClusterID = fmt.Sprint("cluster-", i/3)
		n.Policy.Constraints = []string{"openhorizon.service.name == web OR trusted == true"}
		nodes = append(nodes, Read(n))
	}
	p := policy("", `openhorizon.kubernetesNamespace in "team-1,team-2,team-3,team-4,team-5,team-6,team-7,team-8,team-9"`)
	p.Service.ServiceVersions = versions("3.0.0", "2.0.0", "1.0.0")
	q := &Question{Namespace: "shop", Policy: p, Services: []edge.Service{service("web", "3.0.0", "elsewhere"), service("web", "2.0.0"), service("web", "1.0.0")}, Nodes: nodes}
	b.ReportAllocs()
	for b.Loop() {
		if status, err := Answer(q); err != nil || status.Selected != 1800 {
			b.Fatal(status, err)
		}
	}
}
