// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/constraint"
	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

func scoped(is bool) *bool { return &is }

func node(namespace string, isScoped *bool) *api.EdgeNode {
	return &api.EdgeNode{
		ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Spec:       api.EdgeNodeSpec{NodeType: api.NodeTypeCluster},
		Status:     api.EdgeNodeStatus{Arch: "amd64", Namespace: namespace, NamespaceScoped: isScoped},
	}
}

func service(namespaces ...string) (*api.EdgeServiceSpec, *archive.Contents) {
	return &api.EdgeServiceSpec{URL: "web", Version: "1.0.0", Arch: "amd64", ClusterDeployment: &api.ClusterDeployment{}},
		&archive.Contents{Namespaces: namespaces, Objects: []archive.Object{{Group: "apps", Kind: "Deployment", Name: "web", Scope: archive.Namespaced}}}
}

func policySpec() *api.DeploymentPolicySpec {
	return &api.DeploymentPolicySpec{Service: api.PolicyService{Name: "web", ServiceVersions: []api.ServiceVersion{{Version: "1.0.0"}}}}
}

// stored returns what is left of contents after they were stored in a status, as JSON.
func stored(t *testing.T, contents *archive.Contents) *archive.Contents {
	t.Helper()
	data, err := json.Marshal(ServiceStatus(contents))
	if err != nil {
		t.Fatal(err)
	}
	var status api.EdgeServiceStatus
	if err := json.Unmarshal(data, &status); err != nil {
		t.Fatal(err)
	}
	return Contents(&status)
}

func decide(t *testing.T, n *api.EdgeNode, spec edge.DeploymentSpec) edge.Decision {
	t.Helper()
	read, err := edge.NewNode(Node(n.Name, &n.Spec, &n.Status))
	if err != nil {
		t.Fatal(err)
	}
	d, err := edge.NewDeployment(spec)
	if err != nil {
		t.Fatal(err)
	}
	return edge.Decide(read, d)
}

// The rows of Open Horizon's rule, with API objects in place of the input of pkg/edge, and the archive in a status.
func TestMatrix(t *testing.T) {
	data, err := os.ReadFile("../testdata/namespace-matrix.tsv")
	if err != nil {
		t.Fatal(err)
	}
	table := csv.NewReader(strings.NewReader(strings.ToLower(string(data))))
	table.Comma = '\t'
	rows, err := table.ReadAll()
	if err != nil || len(rows) != 73 {
		t.Fatalf("got %d rows and %v", len(rows), err)
	}
	for _, row := range rows[1:] {
		n := node(edge.LegacyNamespace(row[1]), scoped(row[0] == "true"))
		s, contents := service()
		if row[4] != "" {
			contents.Namespaces = []string{row[4]}
		}
		services := []edge.Service{Service("shop", s, stored(t, contents))}
		var spec edge.DeploymentSpec
		if row[2] == "" {
			p := policySpec()
			p.Service.ClusterNamespace = row[3]
			spec = Policy("shop", "p", p, services)
		} else {
			n.Spec.Pattern = "shop/p"
			p := &api.DeploymentPatternSpec{ClusterNamespace: row[3], Services: []api.PatternService{{ServiceUrl: "web", ServiceVersions: []api.ServiceVersion{{Version: "1.0.0"}}}}}
			spec = PatternServices("shop", "p", p, services)[0]
		}
		got := decide(t, n, spec)
		if want := row[5] == "true"; got.Compatible != want || want && got.Namespace != row[6] {
			t.Errorf("%v: got %+v", row, got)
		}
	}
}

// The stored contents of an archive lead to the same decisions as the archive, for random worlds. If they were truncated, they may deny what the
// archive would not, and never allow what the archive would not.
func TestContents_MatchArchiveDecisions(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	some := func(list ...string) string { return list[random.IntN(len(list))] }
	count := map[string]int{}
	for range 4000 {
		n := node(some("", "abc", "xyz"), nil)
		if random.IntN(8) > 0 {
			n.Status.NamespaceScoped = scoped(random.IntN(2) == 0)
		}
		s, contents := service()
		for i := range []int{0, 0, 1, 1, 2, 70}[random.IntN(6)] {
			contents.Namespaces = append(contents.Namespaces, []string{"abc", "xyz"}[i%2]+strings.Repeat("x", i/2))
		}
		objects := []int{0, 0, 1, 2, 63, 64, 65, 200}[random.IntN(8)]
		for i := range objects {
			o := archive.Object{Group: "g", Kind: "K", Name: fmt.Sprint("o", i), Scope: archive.Cluster}
			contents.Objects = append(contents.Objects, o)
			if random.IntN(objects*8) > 0 {
				n.Status.ClusterObjects = append(n.Status.ClusterObjects, api.ClusterScopedObject{Group: o.Group, Kind: o.Kind, Name: o.Name})
			}
		}
		p := policySpec()
		p.Service.ClusterNamespace = some("", "", "abc", "xyz")
		p.Constraints = [][]string{nil, {api.PropertyKubernetesNamespace + " == abc"}}[random.IntN(2)]
		kept := stored(t, contents)
		want := decide(t, n, Policy("shop", "p", p, []edge.Service{Service("shop", s, contents)}))
		got := decide(t, n, Policy("shop", "p", p, []edge.Service{Service("shop", s, kept)}))
		cut := len(contents.Namespaces) > maxListed || objects > maxListed
		switch {
		case kept.More != cut:
			t.Fatalf("More is %v of %d namespaces and %d objects", kept.More, len(contents.Namespaces), objects)
		case reflect.DeepEqual(got, want):
			count[fmt.Sprintf("same %v", got.Compatible)]++
		case cut && !got.Compatible && got.Reason == edge.ClusterObjects:
			count["denied"]++
		default:
			t.Fatalf("the archive gives %+v, and its status %+v, of %+v and %+v", want, got, n, p)
		}
	}
	if count["same true"] < 400 || count["same false"] < 400 || count["denied"] < 100 {
		t.Errorf("the worlds are too simple: %v", count)
	}
}

func TestServiceStatus_Bounds(t *testing.T) {
	_, contents := service()
	contents.Namespaces = strings.Fields(strings.Repeat("a ", 66))
	for range 67 {
		contents.Objects = append(contents.Objects, archive.Object{Kind: "K", Name: "o", Scope: archive.Cluster})
	}
	status := ServiceStatus(contents)
	if len(status.Namespaces) != 64 || len(status.ClusterScoped) != 64 || status.More != 2+3 || status.Objects != 68 || status.EmbeddedNamespace != "" {
		t.Errorf("got %+v", status)
	}
	if again := ServiceStatus(Contents(&status)); again.More == 0 {
		t.Error("what was cut is whole again")
	}
}

// Contents that were never read cannot be deployed.
func TestContents_WithoutArchive(t *testing.T) {
	if got := Contents(&api.EdgeServiceStatus{Namespaces: []string{"abc"}}); got != nil {
		t.Errorf("got %+v", got)
	}
	if got := ServiceStatus(nil); !reflect.DeepEqual(got, api.EdgeServiceStatus{}) {
		t.Errorf("got %+v", got)
	}
	s, _ := service()
	got := decide(t, node("abc", scoped(true)), Policy("shop", "p", policySpec(), []edge.Service{Service("shop", s, nil)}))
	if got.Reason != edge.ArchiveUnreadable {
		t.Errorf("got %+v", got)
	}
	if a, err := ReadArchive(&api.EdgeServiceSpec{}); a != nil || err != nil {
		t.Errorf("got %v and %v", a, err)
	}
	if _, err := ReadArchive(s); err == nil {
		t.Error("an empty archive was read")
	}
}

func TestNode(t *testing.T) {
	cpu, memory := int64(4), int64(1024)
	n := &api.EdgeNode{Spec: api.EdgeNodeSpec{
		Pattern: "shop/all",
		Policy: api.Policy{
			Properties: []api.Property{
				{Name: "text", Value: api.Value{Type: api.ValueString, String: "1.0"}, Type: api.PropertyVersion},
				{Name: "whole", Value: api.Value{Type: api.ValueNumber, Number: 3}, Type: api.PropertyInt},
				{Name: "part", Value: api.Value{Type: api.ValueNumber, Number: 1.5}},
				{Name: "yes", Value: api.Value{Type: api.ValueBoolean, Boolean: true}},
			},
			Constraints: []string{"a == b"},
		},
		Deployment: &api.Policy{Constraints: []string{"c == d"}},
		Management: &api.Policy{Constraints: []string{"e == f"}},
	}, Status: api.EdgeNodeStatus{
		Arch: "arm64", CPU: &cpu, Memory: &memory, KubernetesVersion: "v1.37.0", Namespace: "abc", ClusterID: "id",
		ClusterObjects: []api.ClusterScopedObject{{Group: "g", Kind: "K", Name: "o"}},
	}}
	want := edge.NodeSpec{Name: "n", Type: edge.Cluster, Pattern: "shop/all",
		Policy: edge.Policy{
			Properties: []constraint.Property{{Name: "text", Value: "1.0", Type: constraint.Version}, {Name: "whole", Value: int64(3), Type: constraint.Int},
				{Name: "part", Value: 1.5}, {Name: "yes", Value: true}},
			Constraints: []string{"a == b"},
		},
		Deployment: edge.Policy{Constraints: []string{"c == d"}},
		Facts: edge.Facts{Arch: "arm64", CPU: 4, Memory: 1024, KubernetesVersion: "v1.37.0", Namespace: "abc", ClusterID: "id",
			ClusterObjects: []archive.Object{{Group: "g", Kind: "K", Name: "o", Scope: archive.Cluster}}},
	}
	if got := Node("n", &n.Spec, &n.Status); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	n.Spec.NodeType = api.NodeTypeDevice
	n.Status.NamespaceScoped = scoped(false)
	if got := Node("n", &n.Spec, &n.Status); got.Type != edge.Device || got.Facts.Scope != edge.ClusterScoped {
		t.Errorf("got %+v", got)
	}
	// A list, which validation rejects for a property, is no valid property of any node.
	n.Spec.Properties[0].Value = api.Value{Type: api.ValueList, List: []string{"a"}}
	if _, err := edge.NewNode(Node("n", &n.Spec, &n.Status)); err == nil {
		t.Error("a list is a value of a property")
	}
}

// The same names in two namespaces are two policies, two patterns, two services.
func TestNamespacesAreSeparate(t *testing.T) {
	s, contents := service()
	services := []edge.Service{Service("tools", s, contents), Service("shop", s, contents), {Org: "shop", Name: "web", Version: "2.0.0"}, {Org: "shop", Name: "other", Version: "1.0.0"}}
	p := policySpec()
	if got := Policy("shop", "p", p, services); got.Name != "shop/p" || got.Org != "shop" || len(got.Services) != 1 || got.Services[0].Org != "shop" {
		t.Errorf("got %+v", got)
	}
	p.Service.Org = "tools"
	if got := Policy("shop", "p", p, services); got.Org != "tools" || len(got.Services) != 1 || got.Services[0].Org != "tools" {
		t.Errorf("got %+v", got)
	}
	pattern := &api.DeploymentPatternSpec{Services: []api.PatternService{
		{ServiceUrl: "web", ServiceArch: "amd64", ServiceVersions: []api.ServiceVersion{{Version: "1.0.0", Priority: &api.Priority{PriorityValue: 7}}, {Version: "2.0.0"}}},
		{ServiceUrl: "web", ServiceOrgid: "tools", ServiceVersions: []api.ServiceVersion{{Version: "1.0.0"}}},
	}}
	list := PatternServices("shop", "p", pattern, services)
	if len(list) != 2 || !list[0].Pattern || len(list[0].Services) != 2 || list[0].Choices[0] != (edge.Choice{Version: "1.0.0", Priority: 7}) || list[0].Arch != "amd64" || list[1].Org != "tools" {
		t.Errorf("got %+v", list)
	}
	if whole := Pattern("shop", pattern, services); len(whole.Services) != 2 || whole.Services[1].Org != "tools" || len(whole.Services[1].Services) != 1 {
		t.Errorf("got %+v", whole)
	}
	n := node("agent", scoped(false))
	for pattern, want := range map[string]edge.Reason{"shop/p": edge.Fits, "other/p": edge.OtherPattern, "p": edge.OtherPattern, "": edge.OtherPattern} {
		n.Spec.Pattern = pattern
		if got := decide(t, n, list[1]); got.Reason != want {
			t.Errorf("a node with the pattern %q: got %+v", pattern, got)
		}
	}
}

func TestWithoutArchive(t *testing.T) {
	s, contents := service()
	s.ClusterDeployment.OperatorYamlArchive = []byte("x")
	stored := &api.EdgeService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: *s, Status: ServiceStatus(contents)}
	shared := s.ClusterDeployment
	WithoutArchive(stored)
	if got := StoredService(stored); !got.ForClusters || got.Contents == nil || got.Org != "shop" || stored.Spec.ClusterDeployment.OperatorYamlArchive != nil {
		t.Errorf("got %+v", got)
	}
	if shared.OperatorYamlArchive == nil {
		t.Error("the archive was taken out of what others have, too")
	}
	device := &api.EdgeService{Spec: api.EdgeServiceSpec{Deployment: &runtime.RawExtension{}}}
	WithoutArchive(device)
	if got := StoredService(device); got.ForClusters || !got.ForDevices {
		t.Errorf("got %+v", got)
	}
}

func TestPlaced(t *testing.T) {
	n, err := edge.NewNode(Node("n", &node("abc", scoped(true)).Spec, &api.EdgeNodeStatus{Namespace: "abc", NamespaceScoped: scoped(true), Arch: "amd64"}))
	if err != nil {
		t.Fatal(err)
	}
	p := &api.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "p-x"}, Spec: api.EdgePlacementSpec{
		Node: "n", Origin: api.PlacementOrigin{Kind: api.KindDeploymentPolicy, Name: "p"},
		Services: []api.PlacedService{{Org: "shop", Name: "web", Version: "1.0.0", Arch: "amd64", TargetNamespace: "abc"}},
	}}
	there, err := Placed(p, n)
	if err != nil {
		t.Fatal(err)
	}
	s, contents := service()
	d, err := edge.NewDeployment(Policy("shop", "a", policySpec(), []edge.Service{Service("shop", s, contents)}))
	if err != nil {
		t.Fatal(err)
	}
	candidate := &edge.Placement{Node: n, Deployment: d, Decision: edge.Decide(n, d)}
	edge.Once(append(there, candidate))
	if candidate.Decision.Reason != edge.ThereAlready || !strings.Contains(candidate.Decision.Message, "policy other/p") || !there[0].Decision.Compatible {
		t.Errorf("got %+v and %+v", candidate.Decision, there[0].Decision)
	}
	p.Spec.Node = "m"
	if _, err := Placed(p, n); err == nil {
		t.Error("a placement of another node is on this one")
	}
}

func TestLanguages(t *testing.T) {
	l := Languages()
	if err := l.Constraint("purpose == retail AND openhorizon.memory > 2048"); err != nil {
		t.Error(err)
	}
	if l.Constraint("purpose ==") == nil || l.VersionRange("[1.0.0,") == nil || l.VersionRange("[1.0.0,2.0.0) OR a == b") == nil {
		t.Error("what cannot be read is valid")
	}
	if err := l.VersionRange("[1.0.0,2.0.0)"); err != nil {
		t.Error(err)
	}
}

// If validation accepts constraints, a node and a deployment with them can be parsed: their total is limited, too.
func TestLanguages_LimitConstraintsTogether(t *testing.T) {
	expression := strings.TrimSuffix(strings.Repeat("a == b AND ", 300), " AND ")
	l := Languages()
	if err := l.Constraint(expression); err != nil {
		t.Fatal(err)
	}
	if err := l.Constraints([]string{expression, expression}); err == nil || !strings.Contains(err.Error(), "512") {
		t.Errorf("600 comparisons: %v", err)
	}
}
