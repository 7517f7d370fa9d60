// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package publishing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/edgetest"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	decide "github.com/clusterhub/clusterhub/pkg/edge"
)

const inXYZ = "openhorizon.kubernetesNamespace == xyz"

// hub has services in shop: web without a namespace, embedded with one, several with two, twin with the objects of web, and device for devices. It
// also has one in tools that is not public.
func hub() *edgetest.Services {
	device := edgetest.Service("shop", "device", "1.0.0", "amd64", nil)
	device.Spec.Deployment = &runtime.RawExtension{Raw: []byte("{}")}
	return &edgetest.Services{Stored: []*edge.EdgeService{
		edgetest.Service("shop", "web", "1.0.0", "amd64", edgetest.Archive("web", "")),
		edgetest.Service("shop", "web", "2.0.0", "amd64", edgetest.Archive("web", "")),
		edgetest.Service("shop", "db", "1.0.0", "amd64", edgetest.Archive("db", "")),
		edgetest.Service("shop", "embedded", "1.0.0", "amd64", edgetest.Archive("embedded", "abc")),
		edgetest.Service("shop", "several", "1.0.0", "amd64", edgetest.Archive("web", "abc", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: xyz}\n")),
		edgetest.Service("shop", "twin", "1.0.0", "amd64", edgetest.Archive("web", "")),
		device,
		edgetest.Service("tools", "private", "1.0.0", "amd64", edgetest.Archive("p", "secret-namespace")),
	}}
}

func pluginFor(hub *edgetest.Services) *Plugin {
	p := New()
	p.SetAuthorizer(&at.Authorizer{})
	p.Services = hub
	return p
}

var resources = map[string]string{"*edge.EdgeNode": "edgenodes", "*edge.EdgeService": "edgeservices", "*edge.DeploymentPolicy": "deploymentpolicies",
	"*edge.DeploymentPattern": "deploymentpatterns"}

// publish creates an object, and replaces an empty one by it. Both must have the same result.
func publish(t *testing.T, hub *edgetest.Services, object, empty runtime.Object) (at.Warnings, error) {
	t.Helper()
	r := at.Request{Group: edge.GroupName, Resource: resources[fmt.Sprintf("%T", object)], Object: object}
	warnings, err := at.Validate(t, pluginFor(hub), r.Attributes())
	r.Old = empty
	again, errAgain := at.Validate(t, pluginFor(hub), r.Attributes())
	if !slices.Equal(warnings, again) || fmt.Sprint(err) != fmt.Sprint(errAgain) {
		t.Errorf("a create gives %q and %v, an update %q and %v", warnings, err, again, errAgain)
	}
	r.Old = object
	if same, err := at.Validate(t, pluginFor(&edgetest.Services{Err: errors.New("etcd is away")}), r.Attributes()); err != nil || len(same) > 0 {
		t.Errorf("the same spec again: %q, %v", same, err)
	}
	return warnings, err
}

// said verifies that the warnings contain these texts, in this order.
func said(t *testing.T, name string, got at.Warnings, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %q, want %d warnings", name, got, len(want))
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%s: got %q, want one with %q", name, got[i], want[i])
		}
	}
}

func TestPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		url, namespace, constraint string
		change                     func(*edge.DeploymentPolicy)
		want                       []string
	}{
		"without a conflict":                {url: "web"},
		"a constraint on another property":  {url: "web", namespace: "abc", constraint: "purpose == retail"},
		"the namespace that it goes to":     {url: "web", namespace: "xyz", constraint: inXYZ},
		"another namespace":                 {url: "web", namespace: "abc", constraint: inXYZ, want: []string{"all namespace-scoped nodes are excluded"}},
		"another than the archive's":        {url: "embedded", constraint: inXYZ, want: []string{"abc (by the archive of the service)"}},
		"clusterNamespace overrides it":     {url: "embedded", namespace: "xyz", constraint: inXYZ},
		"several namespaces":                {url: "several", want: []string{"the archive of the service names several namespaces"}},
		"several, and clusterNamespace":     {url: "several", namespace: "abc"},
		"nothing satisfies it":              {url: "web", constraint: "a > 5 AND a < 3", want: []string{"nothing can be deployed: no node can satisfy the constraints"}},
		"a constraint that surprises":       {url: "web", constraint: `secure == "true"`, want: []string{"spec.constraints[0]: "}},
		"no service yet":                    {url: "later", want: []string{"spec.service: this namespace has no EdgeService of later"}},
		"no service yet, and another fault": {url: "later", namespace: "abc", constraint: inXYZ, want: []string{"this namespace has no EdgeService", "all namespace-scoped nodes are excluded"}},
		"no version for the architecture":   {url: "web", change: func(d *edge.DeploymentPolicy) { d.Spec.Service.Arch = "arm64" }, want: []string{"this namespace has no EdgeService"}},
		"the second version is there":       {url: "web", change: func(d *edge.DeploymentPolicy) { d.Spec.Service.ServiceVersions = edgetest.Versions("9.0.0", "2.0.0") }},
		"a priority": {url: "web", change: func(d *edge.DeploymentPolicy) {
			d.Spec.Service.ServiceVersions[0].Priority = &edge.Priority{PriorityValue: 3}
		}},
		"a property of the agent's namespace": {url: "web", namespace: "abc", constraint: "openhorizon.kubernetesNamespaceScoped == false"},
		"retries": {url: "web", want: []string{"spec.service.serviceVersions: retries, verified_durations are kept and have no effect with one version"},
			change: func(d *edge.DeploymentPolicy) {
				d.Spec.Service.ServiceVersions[0].Priority = &edge.Priority{PriorityValue: 3, Retries: 1, VerifiedDurations: 2}
			}},
		"retry_durations": {url: "web", want: []string{"retry_durations are kept"},
			change: func(d *edge.DeploymentPolicy) {
				d.Spec.Service.ServiceVersions[0].Priority = &edge.Priority{PriorityValue: 3, RetryDurations: 1}
			}},
		"retries of several versions": {url: "web", change: func(d *edge.DeploymentPolicy) {
			d.Spec.Service.ServiceVersions = edgetest.Versions("1.0.0", "2.0.0")
			d.Spec.Service.ServiceVersions[0].Priority = &edge.Priority{PriorityValue: 3, Retries: 1}
		}},
	} {
		d := edgetest.Policy("shop", "", c.url, "1.0.0")
		d.Spec.Service.ClusterNamespace = c.namespace
		if c.constraint != "" {
			d.Spec.Constraints = []string{c.constraint}
		}
		if c.change != nil {
			c.change(d)
		}
		got, err := publish(t, hub(), d, &edge.DeploymentPolicy{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		said(t, name, got, c.want...)
	}
}

// TestPolicies_DoNotDiscloseForbiddenServices verifies that warnings contain nothing about a service that the user may not use.
func TestPolicies_DoNotDiscloseForbiddenServices(t *testing.T) {
	d := edgetest.Policy("shop", "tools", "private", "1.0.0")
	d.Spec.Constraints = []string{inXYZ}
	got, err := publish(t, hub(), d, &edge.DeploymentPolicy{})
	if err != nil || strings.Contains(fmt.Sprint(got), "secret-namespace") {
		t.Errorf("%q, %v", got, err)
	}
	own := hub()
	own.Stored[len(own.Stored)-1].Spec.Public = true
	if got, err := publish(t, own, d, &edge.DeploymentPolicy{}); err != nil || !strings.Contains(fmt.Sprint(got), "secret-namespace") {
		t.Errorf("public: %q, %v", got, err)
	}
}

func TestServices(t *testing.T) {
	for name, c := range map[string]struct {
		packed     []byte
		constraint string
		want       []string
	}{
		"without a namespace":      {packed: edgetest.Archive("web", "")},
		"an embedded namespace":    {packed: edgetest.Archive("web", "abc"), want: []string{"the archive names the namespace abc"}},
		"a Namespace":              {packed: edgetest.Archive("web", "", "apiVersion: v1\nkind: Namespace\nmetadata: {name: abc}\n"), want: []string{"names the namespace abc", "objects of kind Namespace"}},
		"for devices":              {},
		"it contradicts itself":    {packed: edgetest.Archive("web", "abc"), constraint: inXYZ, want: []string{"names the namespace abc", "all namespace-scoped nodes are excluded"}},
		"nothing satisfies it":     {packed: edgetest.Archive("web", ""), constraint: "a > 5 AND a < 3", want: []string{"no node can satisfy"}},
		"a constraint surprises":   {packed: edgetest.Archive("web", ""), constraint: "a != b", want: []string{"spec.policy.constraints[0]: "}},
		"devices, and it does too": {constraint: "a != b", want: []string{"spec.policy.constraints[0]: "}},
	} {
		s := edgetest.Service("shop", "web", "1.0.0", "amd64", c.packed)
		if c.constraint != "" {
			s.Spec.Policy = &edge.Policy{Constraints: []string{c.constraint}}
		}
		got, err := publish(t, hub(), s, &edge.EdgeService{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		said(t, name, got, c.want...)
	}
	// Validation rejects this. Here it is only not read.
	broken := edgetest.Service("shop", "web", "1.0.0", "amd64", nil)
	broken.Spec.ClusterDeployment = &edge.ClusterDeployment{OperatorYamlArchive: []byte("x")}
	if got, err := publish(t, hub(), broken, &edge.EdgeService{}); err != nil || len(got) > 0 {
		t.Errorf("%q, %v", got, err)
	}
}

func of(urls ...string) (services []edge.PatternService) {
	for _, url := range urls {
		services = append(services, edge.PatternService{ServiceUrl: url, ServiceVersions: edgetest.Versions("1.0.0")})
	}
	return services
}

func TestPatterns(t *testing.T) {
	retried := of("web")
	retried[0].ServiceVersions[0].Priority = &edge.Priority{PriorityValue: 1, Retries: 2}
	for name, c := range map[string]struct {
		namespace string
		services  []edge.PatternService
		want      []string
		refused   string
	}{
		"one":                           {services: of("web")},
		"two that go together":          {namespace: "abc", services: of("web", "db")},
		"two with the same object":      {namespace: "abc", services: of("web", "db", "twin"), refused: "web (version 1.0.0) and twin (version 1.0.0) cannot go to one namespace"},
		"the same, in the agent's":      {services: of("web", "twin"), refused: "cannot go to one namespace"},
		"several namespaces":            {services: of("several"), refused: "names several namespaces"},
		"several, and clusterNamespace": {namespace: "abc", services: of("several")},
		"overridden":                    {namespace: "xyz", services: of("embedded"), want: []string{"names the namespace abc in its archive, and goes to xyz"}},
		"only for devices":              {namespace: "abc", services: of("device"), refused: "no service has a clusterDeployment"},
		"one that is not there yet":     {services: of("web", "later"), want: []string{"spec.services[1]: this namespace has no EdgeService of later"}},
		"retries":                       {services: retried, want: []string{"spec.services[0].serviceVersions: retries are kept"}},
	} {
		d := edgetest.Pattern("shop", c.services...)
		d.Spec.ClusterNamespace = c.namespace
		got, err := publish(t, hub(), d, &edge.DeploymentPattern{})
		if c.refused == "" && err != nil || c.refused != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s: got %v, want %q", name, err, c.refused)
		}
		said(t, name, got, c.want...)
	}
}

func TestNodes(t *testing.T) {
	n := &edge.EdgeNode{ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Spec: edge.EdgeNodeSpec{
		Policy: edge.Policy{Constraints: []string{"a == b", "a != b"}}, Deployment: &edge.Policy{Constraints: []string{"a != b"}}, Management: &edge.Policy{},
	}}
	got, err := publish(t, hub(), n, &edge.EdgeNode{})
	if err != nil {
		t.Error(err)
	}
	said(t, "a node", got, "spec.constraints[1]: ", "spec.deployment.constraints[0]: ")
}

// TestBounds verifies that stored objects of other users neither make a write slow nor cause large responses.
func TestBounds(t *testing.T) {
	stored := &edgetest.Services{}
	packed := edgetest.Archive("web", "")
	var named []edge.PatternService
	for i := range 32 {
		var versions []string
		for v := range 32 {
			versions = append(versions, fmt.Sprintf("1.0.%d", v))
			stored.Stored = append(stored.Stored, edgetest.Service("shop", fmt.Sprint("s", i), versions[v], "amd64", packed))
		}
		named = append(named, edge.PatternService{ServiceUrl: fmt.Sprint("s", i), ServiceVersions: edgetest.Versions(versions...)})
	}
	got, err := publish(t, stored, edgetest.Pattern("shop", named...), &edge.DeploymentPattern{})
	if !apierrors.IsInvalid(err) || strings.Count(err.Error(), "cannot go to one namespace") != maxFaults || !strings.Contains(err.Error(), "more errors of this kind") || len(err.Error()) > 8<<10 {
		t.Errorf("got %v", err)
	}
	said(t, "many versions", got, fmt.Sprintf("%d services were not checked", 32*(32-minServices)), "the archives of 96 services were not checked")

	var constraints []string
	for i := range 64 {
		constraints = append(constraints, fmt.Sprintf("a%d != b", i))
	}
	policy := edgetest.Policy("shop", "", "web", "1.0.0")
	policy.Spec.Constraints = constraints
	got, err = publish(t, hub(), policy, &edge.DeploymentPolicy{})
	if err != nil || len(got) != maxWarnings+1 || got[maxWarnings] != "40 more warnings" {
		t.Errorf("%d warnings, %v", len(got), err)
	}
}

func TestReadErrorIsReturned(t *testing.T) {
	for _, object := range []runtime.Object{edgetest.Policy("shop", "", "web", "1.0.0"), edgetest.Pattern("shop", of("web")...)} {
		r := at.Request{Group: edge.GroupName, Resource: resources[fmt.Sprintf("%T", object)], Object: object}
		if _, err := at.Validate(t, pluginFor(&edgetest.Services{Err: errors.New("etcd is away")}), r.Attributes()); err == nil {
			t.Errorf("%s: published without the services", r.Resource)
		}
		r.Object = at.Cluster("c1")
		if _, err := at.Validate(t, pluginFor(hub()), r.Attributes()); !apierrors.IsInternalError(err) {
			t.Errorf("%s: what is none: %v", r.Resource, err)
		}
	}
}

// TestReading_EndsWithContext verifies that a request that has ended does not wait for others that read archives.
func TestReading_EndsWithContext(t *testing.T) {
	p := pluginFor(hub())
	for range maxReaders {
		if !p.enter(t.Context()) {
			t.Fatal("there is no room")
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if p.enter(ended) {
		t.Error("there is more room")
	}
	if left := p.readArchives(ended, candidates{}, make([]decide.Service, 1)); left != 1 {
		t.Errorf("%d are left", left)
	}
	p.release()
	if !p.enter(t.Context()) {
		t.Error("what was left is no room")
	}
}
