// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestServiceName_IsReadable(t *testing.T) {
	for _, c := range []struct{ url, version, arch, want string }{
		{"web", "1.0.0", "amd64", "web--1.0.0--amd64"},
		{"my-service.example.com", "1.0.0-rc1", "arm64", "my-service.example.com--1.0.0-rc1--arm64"},
	} {
		if got := ServiceName(c.url, c.version, c.arch); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func TestServiceName_DistinguishesServices(t *testing.T) {
	names := map[string][3]string{}
	for _, s := range [][3]string{
		{"web", "1.0.0", "amd64"}, {"Web", "1.0.0", "amd64"}, {"WEB", "1.0.0", "amd64"}, {"https://web/", "1.0.0", "amd64"}, {"http://web/", "1.0.0", "amd64"},
		{"web--1.0.0", "2", "amd64"}, {"web", "1.0.0--2", "amd64"}, {"web-", "1.0.0", "amd64"}, {"web", "-1.0.0", "amd64"},
		{"a/b", "c", "d"}, {"a", "b/c", "d"}, {"店", "1.0.0", "amd64"}, {"ü", "1.0.0", "amd64"}, {"", "", ""},
		{strings.Repeat("a", 253), "1.0.0", "amd64"}, {strings.Repeat("a", 252) + "b", "1.0.0", "amd64"},
	} {
		name := ServiceName(s[0], s[1], s[2])
		if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
			t.Errorf("%q is %q: %v", s, name, faults)
		}
		if other, there := names[name]; there && s != [3]string{"a", "b/c", "d"} {
			t.Errorf("%q and %q are both %s", s, other, name)
		}
		names[name] = s
	}
}

func TestPlacementName_IsValid(t *testing.T) {
	long := strings.Repeat("a", MaxOriginName)
	name := PlacementName(PlacementOrigin{Kind: KindDeploymentPolicy, Name: long}, "n1")
	if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
		t.Errorf("%q: %v", name, faults)
	}
	for _, other := range []string{
		PlacementName(PlacementOrigin{Kind: KindDeploymentPattern, Name: long}, "n1"), PlacementName(PlacementOrigin{Kind: KindDeploymentPolicy, Name: long}, "n2"),
	} {
		if other == name {
			t.Errorf("two placements are %s", name)
		}
	}
}

// In the existing system, overlays of a node's properties could set wrong facts.
func TestDropReadOnlyOfNode_AllOverlays(t *testing.T) {
	properties := func() []Property {
		return []Property{{Name: "a"}, {Name: PropertyKubernetesNamespace}, {Name: PropertyAllowPrivileged}, {Name: "openhorizon.service.url"}, {Name: PropertyArch}}
	}
	spec := &EdgeNodeSpec{Policy: Policy{Properties: properties()}, Deployment: &Policy{Properties: properties()}, Management: &Policy{Properties: properties()}}
	dropped := DropReadOnlyOfNode(spec, field.NewPath("spec"))
	if len(dropped) != 9 || dropped[3] != "spec.deployment.properties[1]: openhorizon.kubernetesNamespace" {
		t.Errorf("dropped %q", dropped)
	}
	for _, policy := range []*Policy{&spec.Policy, spec.Deployment, spec.Management} {
		if len(policy.Properties) != 2 || policy.Properties[0].Name != "a" || policy.Properties[1].Name != PropertyAllowPrivileged {
			t.Errorf("left %v", policy.Properties)
		}
	}
	if again := DropReadOnlyOfNode(spec, field.NewPath("spec")); len(again) != 0 {
		t.Errorf("dropped again: %q", again)
	}
	if got := DropReadOnlyOfNode(&EdgeNodeSpec{}, field.NewPath("spec")); got != nil {
		t.Errorf("dropped of nothing: %q", got)
	}
}

func TestPatternKey(t *testing.T) {
	for pattern, want := range map[string]bool{"a/b": true, "a": false, "/b": false, "a/": false, "a/b/c": false, "": false} {
		if _, _, ok := PatternKey(pattern); ok != want {
			t.Errorf("%q: %v", pattern, ok)
		}
	}
}
