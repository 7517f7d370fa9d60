// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package readonlyproperties

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/warning"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
)

// policy returns a policy with properties of the hub around one of the user, and the one that users may set.
func policy() edge.Policy {
	return edge.Policy{Properties: []edge.Property{
		{Name: edge.PropertyKubernetesNamespace}, {Name: "purpose"}, {Name: edge.PropertyAllowPrivileged}, {Name: "openhorizon.service.url"},
	}}
}

func admit(t *testing.T, r at.Request) at.Warnings {
	t.Helper()
	r.Group = edge.GroupName
	var warnings at.Warnings
	if err := New().Admit(warning.WithWarningRecorder(t.Context(), &warnings), r.Attributes(), nil); err != nil {
		t.Fatal(err)
	}
	return warnings
}

func TestAdmit_DropsFromAllOverlays(t *testing.T) {
	pointer := func() *edge.Policy { p := policy(); return &p }
	nodeSpec := func() edge.EdgeNodeSpec {
		return edge.EdgeNodeSpec{Policy: policy(), Deployment: pointer(), Management: pointer()}
	}
	node := &edge.EdgeNode{Spec: nodeSpec()}
	service := &edge.EdgeService{Spec: edge.EdgeServiceSpec{Policy: pointer()}}
	deployment := &edge.DeploymentPolicy{Spec: edge.DeploymentPolicySpec{Policy: policy()}}
	check := &edge.DeployCheck{Spec: edge.DeployCheckSpec{
		Policy:   &edge.DeploymentPolicySpec{Policy: policy()},
		Services: []edge.CheckedService{{}, {Spec: edge.EdgeServiceSpec{Policy: pointer()}}},
		Nodes:    []edge.CheckedNode{{Spec: nodeSpec()}},
	}}
	for _, c := range []struct {
		resource string
		object   runtime.Object
		policies []*edge.Policy
		at       []string
	}{
		{"edgenodes", node, []*edge.Policy{&node.Spec.Policy, node.Spec.Deployment, node.Spec.Management},
			[]string{"spec.properties", "spec.deployment.properties", "spec.management.properties"}},
		{"edgeservices", service, []*edge.Policy{service.Spec.Policy}, []string{"spec.policy.properties"}},
		{"deploymentpolicies", deployment, []*edge.Policy{&deployment.Spec.Policy}, []string{"spec.properties"}},
		{"deploychecks", check, []*edge.Policy{&check.Spec.Policy.Policy, check.Spec.Services[1].Spec.Policy, &check.Spec.Nodes[0].Spec.Policy,
			check.Spec.Nodes[0].Spec.Deployment, check.Spec.Nodes[0].Spec.Management},
			[]string{"spec.policy.properties", "spec.services[1].spec.policy.properties", "spec.nodes[0].spec.properties",
				"spec.nodes[0].spec.deployment.properties", "spec.nodes[0].spec.management.properties"}},
	} {
		got := admit(t, at.Request{Resource: c.resource, Object: c.object})
		var want []string
		for _, path := range c.at {
			for _, name := range []string{"[0]: openhorizon.kubernetesNamespace", "[3]: openhorizon.service.url"} {
				want = append(want, path+name+" was dropped: the hub sets this property itself")
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q\nwant %q", c.resource, got, want)
		}
		for i, p := range c.policies {
			if len(p.Properties) != 2 || p.Properties[0].Name != "purpose" || p.Properties[1].Name != edge.PropertyAllowPrivileged {
				t.Errorf("%s: %s has %v", c.resource, c.at[i], p.Properties)
			}
		}
	}
}

// TestAdmit_Updates verifies that properties in an overlay that is added by an update are dropped, too.
func TestAdmit_Updates(t *testing.T) {
	n := &edge.EdgeNode{Spec: edge.EdgeNodeSpec{Deployment: &edge.Policy{Properties: []edge.Property{{Name: edge.PropertyCPU}}}}}
	if got := admit(t, at.Request{Resource: "edgenodes", Object: n, Old: &edge.EdgeNode{}}); len(got) != 1 || len(n.Spec.Deployment.Properties) != 0 {
		t.Errorf("got %q, and %v is left", got, n.Spec.Deployment)
	}
}

func TestAdmit_NoWarningWithoutThem(t *testing.T) {
	for _, r := range []at.Request{
		{Resource: "edgenodes", Object: &edge.EdgeNode{}},
		{Resource: "edgeservices", Object: &edge.EdgeService{}},
		{Resource: "deploychecks", Object: &edge.DeployCheck{Spec: edge.DeployCheckSpec{Pattern: &edge.DeploymentPatternSpec{}}}},
		{Resource: "deploymentpatterns", Object: &edge.DeploymentPattern{}},
	} {
		if got := admit(t, r); len(got) > 0 {
			t.Errorf("%s: %q", r.Resource, got)
		}
	}
}

func TestAdmit_WarningsAreBounded(t *testing.T) {
	n := &edge.EdgeNode{}
	for range 1000 {
		n.Spec.Properties = append(n.Spec.Properties, edge.Property{Name: edge.PropertyArch})
	}
	got := admit(t, at.Request{Resource: "edgenodes", Object: n})
	if len(got) != maxWarnings+1 || !strings.Contains(got[maxWarnings], fmt.Sprint(1000-maxWarnings)) || len(n.Spec.Properties) > 0 {
		t.Errorf("%d warnings, the last is %q", len(got), got[len(got)-1])
	}
}
