// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/constraint"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

func versions(d *DeploymentSpec, services ...Service) {
	d.Services, d.Choices = services, nil
	for i, s := range services {
		d.Choices = append(d.Choices, Choice{s.Version, i + 1})
	}
}

// D21: the first version names a different namespace in its archive. The next one names none, and is deployed to the namespace of the agent.
func TestDecide_FallsBackToTheNextVersion(t *testing.T) {
	w := newWorld(NamespaceScoped, "abc")
	versions(&w.deployment, service("2.0.0", "xyz"), service("1.0.0"))
	got := w.decide(t)
	expect(t, got, Fits, "abc")
	if got.Version != "1.0.0" || len(got.Rejected) != 1 || got.Rejected[0].Version != "2.0.0" || got.Rejected[0].Reason != OtherEmbeddedNamespace {
		t.Errorf("got %+v", got)
	}
	versions(&w.deployment, service("2.0.0", "xyz"), service("1.0.0", "qq"))
	got = w.decide(t)
	expect(t, got, OtherEmbeddedNamespace, "")
	if !strings.Contains(got.Message, "xyz") || !strings.Contains(got.Message, "version 2.0.0; none of 1 others fits either") {
		t.Errorf("got %q, want the reason of the first version", got.Message)
	}
}

// For a pattern on a cluster-scoped node, the namespace of the first version would exclude the second if it were still set.
func TestDecide_NamespaceDoesNotLeakToNextVersion(t *testing.T) {
	w := newWorld(ClusterScoped, "agent").pattern()
	versions(&w.deployment, service("3.0.0", "xyz"), service("2.0.0", "qq"), service("1.0.0"))
	w.deployment.Services[0].Arch, w.deployment.Services[1].Arch = "arm64", "arm64"
	got := w.decide(t)
	expect(t, got, Fits, "agent")
	if got.Version != "1.0.0" {
		t.Errorf("got version %s", got.Version)
	}
}

// For any versions in any world, the first that is compatible alone is selected, with the same decision as if it were alone.
func TestDecide_VersionsAreIndependent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	some := func(list ...string) string { return list[random.IntN(len(list))] }
	fallbacks := 0
	for range 3000 {
		w := newWorld(Scope(some("cluster", "namespace", "")), some("", "abc", "xyz")).to(some("", "", "abc", "xyz"))
		if random.IntN(4) == 0 {
			w.pattern()
		}
		w.node.Facts.Arch = some("amd64", "arm64", "")
		w.deployment.Arch = some("", AnyArch, "amd64")
		var services []Service
		for i := range 1 + random.IntN(4) {
			s := service(fmt.Sprintf("%d.0.0", i))
			s.Arch = some("amd64", "amd64", "arm64", AnyArch)
			s.ForClusters = random.IntN(5) > 0
			for _, namespace := range []string{"abc", "xyz"} {
				if random.IntN(3) == 0 {
					s.Contents.Namespaces = append(s.Contents.Namespaces, namespace)
				}
			}
			services = append(services, s)
		}
		versions(&w.deployment, services...)
		got := w.decide(t)
		var want Decision
		for i := range services {
			alone := *w
			versions(&alone.deployment, services[i])
			want = alone.decide(t)
			if want.Compatible {
				if i > 0 {
					fallbacks++
				}
				break
			}
		}
		if got.Compatible != want.Compatible || got.Version != want.Version || got.Namespace != want.Namespace || got.Arch != want.Arch {
			t.Fatalf("got %+v, and alone %+v, of %+v", got, want, w)
		}
	}
	if fallbacks < 100 {
		t.Errorf("only %d fallbacks: the worlds are too simple", fallbacks)
	}
}

func TestNewDeployment_OrderOfVersions(t *testing.T) {
	w := newWorld(ClusterScoped, "abc")
	w.deployment.Services = nil
	w.deployment.Choices = []Choice{{"none", 0}, {"second", 2}, {"negative", -1}, {"first", 1}, {"also second", 2}, {"first", 3}}
	_, d := w.read(t)
	var got []string
	for _, c := range d.candidates {
		got = append(got, c.version)
	}
	if want := []string{"first", "second", "also second", "none", "negative"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	expect(t, w.decide(t), VersionMissing, "")
	w.deployment.Choices = nil
	expect(t, w.decide(t), NoVersion, "")
}

func TestDecide_Architectures(t *testing.T) {
	for _, test := range []struct {
		node, deployment string
		services         []string
		reason           Reason
		arch             string
	}{
		{"amd64", "", []string{"amd64"}, Fits, "amd64"},
		{"amd64", "amd64", []string{"amd64"}, Fits, "amd64"},
		{"amd64", "*", []string{"arm64", "amd64"}, Fits, "amd64"},
		{"amd64", "", []string{"*", "amd64"}, Fits, "amd64"},
		{"arm64", "", []string{"*", "amd64"}, Fits, "*"},
		{"arm64", "", []string{"amd64"}, ArchMismatch, ""},
		{"arm64", "amd64", []string{"arm64"}, ArchMismatch, ""},
		{"arm64", "", []string{""}, ArchMismatch, ""},
		{"", "", []string{""}, ArchUnknown, ""},
		{"", "", []string{"amd64"}, ArchUnknown, ""},
		{"", "amd64", []string{"*"}, ArchUnknown, ""},
		{"", "", []string{"*"}, Fits, "*"},
	} {
		w := newWorld(ClusterScoped, "abc")
		w.node.Facts.Arch, w.deployment.Arch = test.node, test.deployment
		w.deployment.Services = nil
		for _, arch := range test.services {
			s := service("1.0.0")
			s.Arch = arch
			w.deployment.Services = append(w.deployment.Services, s)
		}
		if got := w.decide(t); got.Reason != test.reason || got.Arch != test.arch {
			t.Errorf("%+v: got %s (%s)", test, got.Reason, got.Message)
		}
	}
}

// An unknown fact never gets a default value, and matters only if something depends on it.
func TestDecide_UnknownFacts(t *testing.T) {
	for name, test := range map[string]struct {
		world     *world
		reason    Reason
		namespace string
	}{
		"no scope":                           {newWorld(ScopeNotKnown, "abc"), ScopeUnknown, ""},
		"no scope, but clusterNamespace":     {newWorld(ScopeNotKnown, "abc").to("abc"), ScopeUnknown, ""},
		"another scope":                      {newWorld("both", "abc"), ScopeUnknown, ""},
		"no namespace":                       {newWorld(ClusterScoped, ""), NamespaceUnknown, ""},
		"no namespace, but clusterNamespace": {newWorld(ClusterScoped, "").to("abc"), Fits, "abc"},
		"no namespace, but an embedded one":  {newWorld(ClusterScoped, "").embedded("abc"), Fits, "abc"},
		"no namespace of a scoped agent":     {newWorld(NamespaceScoped, "").to("abc"), NamespaceUnknown, ""},
		"no namespace, and a constraint":     {newWorld(ClusterScoped, "").to("abc").constraints(ns + " != xyz"), PolicyConstraint, ""},
		"a scope, and a constraint":          {newWorld(ClusterScoped, "").to("abc").constraints(api.PropertyKubernetesNamespaceScoped + "==false"), Fits, "abc"},
		"no memory":                          {newWorld(ClusterScoped, "abc").constraints(api.PropertyMemory + ">=0"), PolicyConstraint, ""},
		"no cores":                           {newWorld(ClusterScoped, "abc").constraints(api.PropertyCPU + "!=4"), PolicyConstraint, ""},
		"no version":                         {newWorld(ClusterScoped, "abc").constraints(api.PropertyKubernetesVersion + "!=1"), PolicyConstraint, ""},
		"a namespace that none can have":     {newWorld(ClusterScoped, "abc").to("ABC"), NamespaceInvalid, ""},
		"an agent in none":                   {newWorld(ClusterScoped, "a/b"), NamespaceInvalid, ""},
	} {
		t.Run(name, func(t *testing.T) { expect(t, test.world.decide(t), test.reason, test.namespace) })
	}
}

// Whatever users write, and wherever, the built-in properties are the facts.
func TestNewNode_BuiltInPropertiesAreReadOnly(t *testing.T) {
	var lies []constraint.Property
	for _, name := range []string{"arch", "cpu", "memory", "kubernetesVersion", "kubernetesNamespace", "kubernetesNamespaceScoped", "hardwareId",
		"operatingSystem", "containerized"} {
		lies = append(lies, constraint.Property{Name: "openhorizon." + name, Value: "lie"})
	}
	lies = append(lies, constraint.Property{Name: "purpose", Value: "top"})
	spec := NodeSpec{Name: "n", Type: Cluster, Facts: Facts{Arch: "amd64", Scope: NamespaceScoped, Namespace: "abc", CPU: 4, Memory: 1024, KubernetesVersion: "v1.37.0"},
		Policy: Policy{Properties: lies}, Deployment: Policy{Properties: slices.Clone(lies)}}
	spec.Deployment.Properties[len(lies)-1].Value = "over"
	n, err := NewNode(spec)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{api.PropertyArch: "amd64", api.PropertyCPU: int64(4), api.PropertyMemory: int64(1024), api.PropertyKubernetesVersion: "v1.37.0",
		api.PropertyKubernetesNamespace: "abc", api.PropertyKubernetesNamespaceScoped: true, api.PropertyAllowPrivileged: true, "purpose": "over"}
	got := map[string]any{}
	for _, p := range n.Properties().All() {
		got[p.Name] = p.Value
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	spec.Facts = Facts{}
	n, err = NewNode(spec)
	if err != nil {
		t.Fatal(err)
	}
	if all := n.Properties().All(); len(all) != 2 {
		t.Errorf("of a node of which nothing is known, got %v", all)
	}
	if lies[0].Value != "lie" || len(spec.Policy.Properties) != len(lies) {
		t.Error("what the caller has was changed")
	}
	// A property with a type that no fact has is dropped, too.
	spec.Policy.Properties = []constraint.Property{{Name: api.PropertyKubernetesNamespace, Value: []string{"a"}}}
	spec.Deployment = Policy{}
	if _, err := NewNode(spec); err != nil {
		t.Error(err)
	}
}

func TestNewNode_OwnerProperties(t *testing.T) {
	w := newWorld(ClusterScoped, "abc").has(api.PropertyAllowPrivileged, false).constraints(api.PropertyAllowPrivileged + "==true")
	expect(t, w.decide(t), PolicyConstraint, "")
	w.node.Deployment.Properties = []constraint.Property{{Name: api.PropertyAllowPrivileged, Value: true}}
	expect(t, w.decide(t), Fits, "abc")
	expect(t, newWorld(ClusterScoped, "").device().constraints(api.PropertyAllowPrivileged+"==false").decide(t), Fits, "")
	expect(t, newWorld(ClusterScoped, "").device().constraints(api.PropertyKubernetesNamespaceScoped+"==false").decide(t), PolicyConstraint, "")
}

func TestDecide_PoliciesOfBothSides(t *testing.T) {
	property := func(name string, value any) []constraint.Property {
		return []constraint.Property{{Name: name, Value: value}}
	}
	for name, test := range map[string]struct {
		change func(*world)
		want   Reason
	}{
		"the policy asks the node": {func(w *world) { w.deployment.Policy.Constraints = []string{"gpu == true"} }, PolicyConstraint},
		"and gets it": {func(w *world) {
			w.has("gpu", true).deployment.Policy.Constraints = []string{"gpu == true"}
		}, Fits},
		"the service asks the node": {func(w *world) { w.deployment.Services[0].Policy.Constraints = []string{"gpu == true"} }, ServiceConstraint},
		"the node asks":             {func(w *world) { w.node.Policy.Constraints = []string{"trusted == true"} }, NodeConstraint},
		"and the policy has it":     {func(w *world) { asks(w); w.deployment.Policy.Properties = property("trusted", true) }, Fits},
		"and the service has it":    {func(w *world) { asks(w); w.deployment.Services[0].Policy.Properties = property("trusted", true) }, Fits},
		"and the policy says the opposite": {func(w *world) {
			asks(w)
			w.deployment.Services[0].Policy.Properties = property("trusted", true)
			w.deployment.Policy.Properties = property("trusted", false)
		}, NodeConstraint},
		"the node asks which service": {func(w *world) { w.node.Policy.Constraints = []string{"openhorizon.service.name == s"} }, Fits},
		"and cannot be told another": {func(w *world) {
			w.node.Policy.Constraints = []string{"openhorizon.service.name == other"}
			w.deployment.Policy.Properties = property("openhorizon.service.name", "other")
			w.deployment.Services[0].Policy.Properties = property("openhorizon.service.name", "other")
		}, NodeConstraint},
		"the node asks which version": {func(w *world) { w.node.Policy.Constraints = []string{"openhorizon.service.version in [1.0.0,2.0.0)"} }, Fits},
		"constraints for deployments replace the others": {func(w *world) {
			asks(w)
			w.node.Deployment.Constraints = []string{"openhorizon.service.name == s"}
		}, Fits},
		"a pattern asks nothing": {func(w *world) {
			asks(w)
			w.pattern()
			w.deployment.Services[0].Policy.Constraints = []string{"gpu == true"}
		}, Fits},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(ClusterScoped, "abc")
			test.change(w)
			got := w.decide(t)
			if got.Reason != test.want {
				t.Errorf("got %s (%s), want %s", got.Reason, got.Message, test.want)
			}
			// A user who deploys does not see the constraints of a node.
			if strings.Contains(got.Message, "trusted") {
				t.Errorf("the message has the constraint of the node: %s", got.Message)
			}
		})
	}
}

func asks(w *world) { w.node.Policy.Constraints = []string{"trusted == true"} }

func TestDecide_PatternsOfNodes(t *testing.T) {
	w := newWorld(ClusterScoped, "abc")
	w.node.Pattern = "other"
	expect(t, w.decide(t), HasPattern, "")
	w.deployment.Pattern = true
	expect(t, w.decide(t), OtherPattern, "")
	w.node.Pattern = ""
	expect(t, w.decide(t), OtherPattern, "")
}

// A namespace-scoped agent cannot create cluster-scoped objects.
func TestDecide_ClusterScopedObjects(t *testing.T) {
	crd := archive.Object{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "parrots.example.com", Scope: archive.Cluster}
	with := func(w *world) *world {
		c := w.deployment.Services[0].Contents
		c.Objects = append(c.Objects, crd)
		return w
	}
	expect(t, with(newWorld(ClusterScoped, "abc")).decide(t), Fits, "abc")
	w := with(newWorld(NamespaceScoped, "abc"))
	expect(t, w.decide(t), ClusterObjects, "")
	w.node.Facts.ClusterObjects = []archive.Object{{Group: crd.Group, Kind: crd.Kind, Name: "cats.example.com"}}
	expect(t, w.decide(t), ClusterObjects, "")
	w.node.Facts.ClusterObjects = []archive.Object{{Group: crd.Group, Kind: crd.Kind, Name: crd.Name}}
	expect(t, w.decide(t), Fits, "abc")
	w.deployment.Services[0].Contents.More = true
	expect(t, w.decide(t), ClusterObjects, "")
	w.node.Facts.Scope = ClusterScoped
	expect(t, w.decide(t), Fits, "abc")
}

// A node gets all services of a pattern that are for it, or none.
func TestDecidePattern(t *testing.T) {
	type one struct {
		name   string
		change func(*Service)
	}
	fits := one{"fits", func(*Service) {}}
	arm := one{"arm", func(s *Service) { s.Arch = "arm64" }}
	device := one{"device", func(s *Service) { s.ForClusters, s.ForDevices, s.Contents = false, true, nil }}
	broken := one{"broken", func(s *Service) { s.Contents = nil }}
	for name, test := range map[string]struct {
		services []one
		want     []Reason
		fits     bool
	}{
		"all fit":                  {[]one{fits, fits}, []Reason{Fits, Fits}, true},
		"one is for others":        {[]one{arm, fits, device}, []Reason{ArchMismatch, Fits, NotForClusters}, true},
		"all are for others":       {[]one{arm, device}, []Reason{ArchMismatch, NotForClusters}, false},
		"one cannot be read":       {[]one{fits, broken}, []Reason{PartOfPattern, ArchiveUnreadable}, false},
		"and one is for others":    {[]one{broken, arm, fits}, []Reason{ArchiveUnreadable, ArchMismatch, PartOfPattern}, false},
		"a pattern of no services": {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(NamespaceScoped, "abc").pattern().to("abc")
			n, _ := w.read(t)
			var deployments []*Deployment
			for _, s := range test.services {
				w := newWorld(NamespaceScoped, "abc").pattern().to("abc")
				w.deployment.Service, w.deployment.Services[0].Name = s.name, s.name
				s.change(&w.deployment.Services[0])
				_, d := w.read(t)
				deployments = append(deployments, d)
			}
			decisions, compatible := DecidePattern(n, deployments)
			var got []Reason
			for _, d := range decisions {
				got = append(got, d.Reason)
				if d.Compatible != (d.Reason == Fits) || d.Reason == PartOfPattern && !strings.Contains(d.Message, "service broken") {
					t.Errorf("got %+v", d)
				}
			}
			if !slices.Equal(got, test.want) || compatible != test.fits {
				t.Errorf("got %v, %v, want %v, %v", got, compatible, test.want, test.fits)
			}
		})
	}
}

// Whatever users write, a message fits into the status of a placement.
func TestDecide_MessagesAreShort(t *testing.T) {
	long := "purpose == \"" + strings.Repeat("ü", 1500) + "\""
	w := newWorld(ClusterScoped, "abc").constraints(long)
	got := w.decide(t)
	expect(t, got, PolicyConstraint, "")
	w = newWorld(ClusterScoped, "abc")
	w.deployment.Services[0].Policy.Constraints = []string{long}
	service := w.decide(t)
	expect(t, service, ServiceConstraint, "")
	w = newWorld(ClusterScoped, "abc")
	w.deployment.Services = nil
	for range 100 {
		s := w.serviceFor(strings.Repeat("a", 63))
		w.deployment.Services = append(w.deployment.Services, s)
	}
	arch := w.decide(t)
	expect(t, arch, ArchMismatch, "")
	for _, d := range []Decision{got, service, arch} {
		if len(d.Message) > 1024 || !strings.ContainsAny(d.Message, "üa") {
			t.Errorf("got a message of %d bytes: %s", len(d.Message), d.Message)
		}
	}
}

func (w *world) serviceFor(arch string) Service {
	s := service("1.0.0")
	s.Arch = arch
	return s
}
