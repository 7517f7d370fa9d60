// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
)

func service(name, version string, namespaces ...string) edge.Service {
	return edge.Service{Org: "shop", Name: name, Version: version, Arch: "amd64", ForClusters: true, Contents: &archive.Contents{Namespaces: namespaces,
		Objects: []archive.Object{{Group: "apps", Kind: "Deployment", Name: name, Scope: archive.Namespaced}}}}
}

func versions(list ...string) []api.ServiceVersion {
	var versions []api.ServiceVersion
	for i, v := range list {
		versions = append(versions, api.ServiceVersion{Version: v, Priority: &api.Priority{PriorityValue: int32(i + 1)}})
	}
	return versions
}

func node(name string, scope edge.Scope, namespace string) edge.NodeSpec {
	return edge.NodeSpec{Name: name, Type: edge.Cluster, Facts: edge.Facts{Arch: "amd64", Scope: scope, Namespace: namespace}}
}

func policy(clusterNamespace string, constraints ...string) *api.DeploymentPolicySpec {
	return &api.DeploymentPolicySpec{
		Service: api.PolicyService{Name: "web", ClusterNamespace: clusterNamespace, ServiceVersions: versions("1.0.0")},
		Policy:  api.Policy{Constraints: constraints},
	}
}

func pattern(clusterNamespace string, services ...string) *api.DeploymentPatternSpec {
	p := &api.DeploymentPatternSpec{ClusterNamespace: clusterNamespace}
	for _, s := range services {
		p.Services = append(p.Services, api.PatternService{ServiceUrl: s, ServiceVersions: versions("1.0.0")})
	}
	return p
}

func read(specs ...edge.NodeSpec) []Candidate {
	var nodes []Candidate
	for _, spec := range specs {
		nodes = append(nodes, Read(spec))
	}
	return nodes
}

func answer(t testing.TB, q *Question) *api.DeployCheckStatus {
	t.Helper()
	q.Namespace = "shop"
	status, err := Answer(q)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// lines formats an answer, with a line for each node.
func lines(status *api.DeployCheckStatus) []string {
	var list []string
	for _, n := range status.Nodes {
		line := fmt.Sprintf("%s %v %s", n.Node, n.Deployable, n.Reason)
		for _, s := range n.Services {
			line += fmt.Sprintf(" [%s %v %s>%s %s]", s.Name, s.Deployable, s.Version, s.TargetNamespace, s.Reason)
		}
		list = append(list, line)
	}
	return list
}

func expect(t *testing.T, status *api.DeployCheckStatus, want ...string) {
	t.Helper()
	if got := lines(status); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAnswer_Policy(t *testing.T) {
	status := answer(t, &Question{
		Policy: policy("abc"), Services: []edge.Service{service("web", "1.0.0", "xyz")},
		Nodes: append(read(node("c", edge.NamespaceScoped, "xyz"), node("b", edge.NamespaceScoped, "abc"), node("a", edge.ClusterScoped, "agent"),
			edge.NodeSpec{Name: "e", Type: edge.Cluster, Policy: edge.Policy{Constraints: []string{"secret =="}}}),
			Candidate{Name: "d", Reason: NotReached}, Candidate{Name: "f", Reason: NodeNotFound}, Candidate{Name: "g"}),
	})
	expect(t, status,
		"a true  [web true 1.0.0>abc ]", "b true  [web true 1.0.0>abc ]", "c false OtherClusterNamespace [web false > OtherClusterNamespace]",
		"d false NotReached", "e false NodeUnreadable", "f false NodeNotFound", "g false NodeUnreadable")
	if !status.Deployable || status.Selected != 2 || status.Continue != "" {
		t.Errorf("got %+v", status)
	}
	want := []api.ExcludedNodes{{Reason: "NodeUnreadable", Nodes: 2}, {Reason: "NodeNotFound", Nodes: 1}, {Reason: "NotReached", Nodes: 1}, {Reason: "OtherClusterNamespace", Nodes: 1}}
	if !slices.Equal(status.Excluded, want) {
		t.Errorf("got %v", status.Excluded)
	}
	for _, n := range status.Nodes {
		if n.Message == "" || strings.Contains(n.Message, "secret") {
			t.Errorf("%s: got %q", n.Node, n.Message)
		}
	}
}

// All nodes are judged as if they had the pattern, even those that have another. Services for another architecture are left out.
func TestAnswer_Pattern(t *testing.T) {
	arm := service("tool", "1.0.0")
	arm.Arch = "arm64"
	q := &Question{Pattern: pattern("", "web", "db", "tool"), Name: "all",
		Services: []edge.Service{service("web", "1.0.0"), service("db", "1.0.0", "data"), arm}}
	other := node("b", edge.ClusterScoped, "agent")
	other.Pattern = "tools/all"
	q.Nodes = read(node("a", edge.ClusterScoped, "agent"), other, node("c", edge.NamespaceScoped, "agent"), node("d", edge.ClusterScoped, ""))
	status := answer(t, q)
	const both = " true  [web true 1.0.0>agent ] [db true 1.0.0>data ] [tool false > ArchMismatch]"
	expect(t, status, "a"+both, "b"+both,
		"c false PatternWithoutNamespace [web false > PatternWithoutNamespace] [db false > PatternWithoutNamespace] [tool false > ArchMismatch]",
		"d false NamespaceUnknown [web false > NamespaceUnknown] [db false > PartOfPattern] [tool false > ArchMismatch]")
	if status.Selected != 2 || !strings.HasPrefix(status.Nodes[3].Message, "service web: ") {
		t.Errorf("got %+v", status)
	}
	if got := edge.Decide(q.Nodes[0].Node, nopattern(t)); got.Reason == edge.HasPattern {
		t.Error("the node has the pattern now")
	}
}

func TestAnswer_RejectedPattern(t *testing.T) {
	status := answer(t, &Question{Pattern: pattern("", "web", "db"), Services: []edge.Service{service("web", "1.0.0", "a", "b"), service("db", "1.0.0")},
		Nodes: read(node("a", edge.ClusterScoped, "agent"))})
	expect(t, status, "a false PatternRefused")
	if len(status.Warnings) == 0 || !strings.Contains(status.Warnings[0], "several namespaces") || status.Deployable {
		t.Errorf("got %+v", status)
	}
}

func TestAnswer_Warnings(t *testing.T) {
	s := service("web", "1.0.0", "xyz")
	status := answer(t, &Question{Policy: policy("abc", "openhorizon.kubernetesNamespace == xyz"), Services: []edge.Service{s}, Published: []edge.Service{s}})
	// The answer of a check does not advise to run a check.
	if len(status.Warnings) != 2 || !strings.Contains(status.Warnings[0], "all namespace-scoped nodes are excluded") || strings.Contains(status.Warnings[0], "deploycheck") ||
		!strings.HasPrefix(status.Warnings[1], "service web, version 1.0.0 for amd64: the archive names the namespace xyz") {
		t.Errorf("got %q", status.Warnings)
	}
	status = answer(t, &Question{Policy: policy("", "purpose =="), Nodes: read(node("a", edge.ClusterScoped, "abc"))})
	expect(t, status, "a false Unreadable")
	if len(status.Warnings) != 1 || !strings.Contains(status.Warnings[0], "constraints") {
		t.Errorf("got %q", status.Warnings)
	}
	surprising := policy("", "purpose != retail")
	surprising.Service.ServiceVersions[0].Priority.Retries = 3
	s = service("web", "1.0.0")
	s.Policy.Constraints = []string{"a != b"}
	status = answer(t, &Question{Policy: surprising, Services: []edge.Service{s}, Published: []edge.Service{s}})
	if len(status.Warnings) != 3 || !strings.HasPrefix(status.Warnings[0], "spec.constraints[0]: ") || !strings.Contains(status.Warnings[1], "retries are kept and have no effect") ||
		!strings.HasPrefix(status.Warnings[2], "service web, version 1.0.0 for amd64: spec.policy.constraints[0]: ") {
		t.Errorf("got %q", status.Warnings)
	}
	some := pattern("", "web")
	some.Services[0].ServiceVersions[0].Priority.RetryDurations = 3
	status = answer(t, &Question{Pattern: some, Services: []edge.Service{s}})
	if len(status.Warnings) != 1 || !strings.HasPrefix(status.Warnings[0], "spec.services[0].serviceVersions: retry_durations are kept and have no effect in a pattern") {
		t.Errorf("got %q", status.Warnings)
	}
	s = service("web", "1.0.0", "xyz")
	var many []edge.Service
	for i := range 40 {
		s := s
		s.Name = strings.Repeat("ü", 2000) + fmt.Sprint(i)
		many = append(many, s)
	}
	status = answer(t, &Question{Policy: policy(""), Published: many})
	if len(status.Warnings) != 32 || len([]rune(status.Warnings[0])) != 1024 || !strings.HasPrefix(status.Warnings[31], "there are more") {
		t.Errorf("got %d warnings, of which the first has %d characters", len(status.Warnings), len([]rune(status.Warnings[0])))
	}
}

// There is a message for each version, which contains no constraint of a node.
func TestAnswer_Messages(t *testing.T) {
	p := policy("")
	p.Service.ServiceVersions = versions("3.0.0", "2.0.0", "1.0.0")
	n := node("a", edge.NamespaceScoped, "abc")
	services := []edge.Service{service("web", "3.0.0", "xyz"), service("web", "1.0.0")}
	status := answer(t, &Question{Policy: p, Services: services, Nodes: read(n)})
	got := status.Nodes[0].Services[0].Message
	if !strings.HasPrefix(got, "gets version 1.0.0 in namespace abc; version 3.0.0: ") || !strings.Contains(got, "; version 2.0.0: there is no version") {
		t.Errorf("got %q", got)
	}
	n.Policy.Constraints = []string{"codename == bluebird"}
	status = answer(t, &Question{Policy: p, Services: services, Nodes: read(n)})
	expect(t, status, "a false OtherEmbeddedNamespace [web false > OtherEmbeddedNamespace]")
	got = status.Nodes[0].Services[0].Message
	if strings.Contains(got, "bluebird") || strings.Count(got, "version ") < 3 || !strings.Contains(got, "version 1.0.0: the properties of policy") {
		t.Errorf("got %q", got)
	}
}

func TestAnswer_Pages(t *testing.T) {
	var nodes []Candidate
	for i := range 1203 {
		nodes = append(nodes, Read(node(fmt.Sprintf("n%04d", 1202-i), edge.ClusterScoped, "abc")))
	}
	q := &Question{Policy: policy(""), Services: []edge.Service{service("web", "1.0.0")}, Nodes: nodes}
	var names []string
	for _, want := range []int{500, 500, 203} {
		status := answer(t, q)
		if len(status.Nodes) != want || status.Selected != 1203 || (status.Continue == "") != (want == 203) {
			t.Fatalf("got %d nodes, %d selected and continue %q", len(status.Nodes), status.Selected, status.Continue)
		}
		for _, n := range status.Nodes {
			names = append(names, n.Node)
		}
		q.Continue = status.Continue
	}
	if !slices.IsSorted(names) || len(slices.Compact(names)) != 1203 || nodes[0].Name != "n1202" {
		t.Error("not each node is told of once, in order")
	}
	for _, test := range []struct {
		limit      int
		after      string
		want       int
		first      string
		isContinue string
	}{{1, "", 1, "n0000", "n0000"}, {5000, "", 1000, "n0000", "n0999"}, {2, "n0003x", 2, "n0004", "n0005"}, {2, "n1200", 2, "n1201", ""}, {2, "z", 0, "", ""}} {
		q.Limit, q.Continue = test.limit, test.after
		status := answer(t, q)
		if len(status.Nodes) != test.want || test.want > 0 && status.Nodes[0].Node != test.first || status.Continue != test.isContinue || status.Selected != 1203 {
			t.Errorf("%+v: got %d nodes and continue %q", test, len(status.Nodes), status.Continue)
		}
	}
}

// Nodes that the user may not see count, and are on no page.
func TestAnswer_Hidden(t *testing.T) {
	var nodes []Candidate
	for i := range 10 {
		n := Read(node(fmt.Sprint("n", i), edge.ClusterScoped, "abc"))
		n.Hidden = i%3 == 0
		nodes = append(nodes, n)
	}
	q := &Question{Policy: policy(""), Services: []edge.Service{service("web", "1.0.0")}, Nodes: nodes, Limit: 3}
	for _, want := range []string{"n1 n2 n4 then n4", "n5 n7 n8 then "} {
		status := answer(t, q)
		var got []string
		for _, n := range status.Nodes {
			got = append(got, n.Node)
		}
		if told := strings.Join(append(got, "then", status.Continue), " "); told != want || status.Selected != 10 || !status.Deployable {
			t.Errorf("got %s with %d selected, want %s", told, status.Selected, want)
		}
		q.Continue = status.Continue
	}
}

// There are two agents of one cluster, and existing placements: of this policy, of one that the user may see, and of one of others.
func TestAnswer_Once(t *testing.T) {
	in := func(name, cluster string, scope edge.Scope) edge.NodeSpec {
		n := node(name, scope, "abc")
		n.Facts.ClusterID = cluster
		return n
	}
	q := &Question{Policy: policy("abc"), Name: "p", Services: []edge.Service{service("web", "1.0.0")},
		Nodes: read(in("a", "x", edge.ClusterScoped), in("b", "x", edge.NamespaceScoped), in("c", "y", edge.ClusterScoped), in("d", "z", edge.ClusterScoped), in("e", "", edge.ClusterScoped))}
	status := answer(t, q)
	expect(t, status, "a false ThereAlready [web false > ThereAlready]", "b true  [web true 1.0.0>abc ]", "c true  [web true 1.0.0>abc ]",
		"d true  [web true 1.0.0>abc ]", "e true  [web true 1.0.0>abc ]")
	if got := status.Nodes[0].Message; !strings.Contains(got, "the node b and the policy shop/p") {
		t.Errorf("got %q", got)
	}
	placed := func(namespace, policy, node string) *edge.Placement {
		for _, n := range q.Nodes {
			if n.Name == node {
				p := &api.EdgePlacement{Spec: api.EdgePlacementSpec{Node: node, Origin: api.PlacementOrigin{Kind: api.KindDeploymentPolicy, Name: policy},
					Services: []api.PlacedService{{Name: "web", Org: "shop", Version: "1.0.0", Arch: "amd64", TargetNamespace: "abc"}}}}
				p.Namespace = namespace
				list, err := model.Placed(p, n.Node)
				if err != nil {
					t.Fatal(err)
				}
				return list[0]
			}
		}
		return nil
	}
	hidden := placed("secretteam", "codename", "d")
	hidden.Hidden = true
	q.Placed = []*edge.Placement{placed("shop", "p", "a"), placed("tools", "p", "c"), hidden}
	status = answer(t, q)
	expect(t, status, "a true  [web true 1.0.0>abc ]", "b false ThereAlready [web false > ThereAlready]", "c false ThereAlready [web false > ThereAlready]",
		"d false ThereAlready [web false > ThereAlready]", "e true  [web true 1.0.0>abc ]")
	if got := status.Nodes[2].Message; !strings.Contains(got, "policy tools/p") {
		t.Errorf("got %q", got)
	}
	if got := status.Nodes[3].Message; strings.Contains(got, "codename") || strings.Contains(got, "node d") || !strings.Contains(got, "by another deployment") {
		t.Errorf("got %q", got)
	}
	if !hidden.Decision.Compatible || len(answer(t, q).Nodes) != 5 || !reflect.DeepEqual(lines(answer(t, q)), lines(status)) {
		t.Error("a check changes what it is asked with")
	}
	// A policy of the check without a name differs from all existing ones.
	q.Name, q.Placed = "", q.Placed[:1]
	if got := answer(t, q); got.Nodes[0].Reason != "ThereAlready" || got.Selected != 3 {
		t.Errorf("got %v", lines(got))
	}
}

func TestAnswer_RequiresQuestion(t *testing.T) {
	if _, err := Answer(&Question{}); err == nil {
		t.Error("no policy and no pattern are a question")
	}
	if _, err := Answer(&Question{Policy: policy(""), Pattern: pattern("")}); err == nil {
		t.Error("both are a question")
	}
}

// nopattern returns a policy.
func nopattern(t *testing.T) *edge.Deployment {
	t.Helper()
	d, err := edge.NewDeployment(edge.DeploymentSpec{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
