// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds/boundstest"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/install"
)

var scheme = boundstest.Scheme(install.Install)

// wantErrors compares what errors say with the beginnings of what is wanted.
func wantErrors(t *testing.T, errs field.ErrorList, want ...string) {
	t.Helper()
	var got []string
	for _, err := range errs {
		got = append(got, err.Error())
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// stored is the metadata of an object that exists.
func stored() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "1", UID: "u", Generation: 1}
}

func validProfile() *openmcp.ClusterProfile {
	m := stored()
	m.Namespace = ""
	return &openmcp.ClusterProfile{ObjectMeta: m, Spec: openmcp.ClusterProfileSpec{
		ProviderRef: openmcp.LocalObjectReference{Name: "kind"}, ProviderConfigRef: openmcp.LocalObjectReference{Name: "config"},
		SupportedVersions: []openmcp.SupportedK8sVersion{{Version: "1.33.3"}},
	}}
}

func validCluster() *openmcp.Cluster {
	return &openmcp.Cluster{ObjectMeta: stored(), Spec: openmcp.ClusterSpec{
		Profile: "kind", Purposes: []string{"mcp"}, Tenancy: openmcp.TENANCY_SHARED,
	}}
}

func validClusterRequest() *openmcp.ClusterRequest {
	return &openmcp.ClusterRequest{ObjectMeta: stored(), Spec: openmcp.ClusterRequestSpec{Purpose: "mcp"}}
}

type change[T any] struct {
	what   string
	change func(T)
	want   []string
}

func TestClusterProfile(t *testing.T) {
	for _, c := range []change[*openmcp.ClusterProfile]{
		{"valid", func(*openmcp.ClusterProfile) {}, nil},
		{"no versions said", func(p *openmcp.ClusterProfile) { p.Spec.SupportedVersions = []openmcp.SupportedK8sVersion{} }, nil},
		{"null for versions", func(p *openmcp.ClusterProfile) { p.Spec.SupportedVersions = nil }, []string{"spec.supportedVersions: Required value"}},
		{"a short version", func(p *openmcp.ClusterProfile) { p.Spec.SupportedVersions[0].Version = "1.33" },
			[]string{"spec.supportedVersions[0].version: Too short: must be at least 5 characters"}},
		{"no provider", func(p *openmcp.ClusterProfile) { p.Spec.ProviderRef.Name = "" }, []string{"spec.providerRef.name: Required value"}},
		{"no configuration", func(p *openmcp.ClusterProfile) { p.Spec.ProviderConfigRef.Name = "" }, []string{"spec.providerConfigRef.name: Required value"}},
		{"what is no label", func(p *openmcp.ClusterProfile) { p.Spec.ProviderConfigRef.Name = "a b" }, []string{"spec.providerConfigRef.name: Invalid value"}},
		{"another provider", func(p *openmcp.ClusterProfile) { p.Spec.ProviderRef.Name = "other" }, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := validProfile()
			c.change(p)
			wantErrors(t, boundstest.Created(t, scheme, p, ValidateClusterProfile), c.want...)
			wantErrors(t, boundstest.Updated(t, scheme, p, validProfile(), ValidateClusterProfileUpdate), c.want...)
		})
	}
	long := validProfile()
	if got := ClusterProfileWarnings(long); len(got) != 0 {
		t.Errorf("warns of a good name: %q", got)
	}
	long.Name = strings.Repeat("x", 64)
	wantErrors(t, boundstest.Created(t, scheme, long, ValidateClusterProfile))
	if got := ClusterProfileWarnings(long); len(got) != 1 || !strings.HasPrefix(got[0], "metadata.name: ") {
		t.Errorf("of a name that is no label: %q", got)
	}
}

func TestCluster(t *testing.T) {
	for _, c := range []change[*openmcp.Cluster]{
		{"valid", func(*openmcp.Cluster) {}, nil},
		{"no purposes", func(c *openmcp.Cluster) { c.Spec.Purposes = nil }, nil},
		{"an empty list of purposes", func(c *openmcp.Cluster) { c.Spec.Purposes = []string{} },
			[]string{"spec.purposes: Invalid value: should have at least 1 items"}},
		{"no tenancy", func(c *openmcp.Cluster) { c.Spec.Tenancy = "" }, []string{"spec.tenancy: Required value"}},
		{"an unknown tenancy", func(c *openmcp.Cluster) { c.Spec.Tenancy = "Own" },
			[]string{`spec.tenancy: Unsupported value: "Own": supported values: "Exclusive", "Shared"`}},
		{"the other tenancy", func(c *openmcp.Cluster) { c.Spec.Tenancy = "Exclusive" }, nil},
		{"more", func(c *openmcp.Cluster) {
			c.Spec.Kubernetes.Version = "1.33.3"
			c.Spec.ClusterConfigs = []openmcp.LocalObjectReference{{Name: "c"}}
			c.Spec.Purposes = []string{"a", "b"}
		}, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			cluster := validCluster()
			c.change(cluster)
			wantErrors(t, boundstest.Created(t, scheme, cluster, ValidateCluster), c.want...)
			wantErrors(t, boundstest.Updated(t, scheme, cluster, validCluster(), ValidateClusterUpdate), c.want...)
		})
	}
	none, other := validCluster(), validCluster()
	none.Spec.Profile, other.Spec.Profile = "", "other"
	wantErrors(t, boundstest.Created(t, scheme, none, ValidateCluster), "spec.profile: Required value")
	wantErrors(t, boundstest.Created(t, scheme, other, ValidateCluster))
	wantErrors(t, boundstest.Updated(t, scheme, other, validCluster(), ValidateClusterUpdate), `spec.profile: Invalid value: "other": profile is immutable`)
}

func TestClusterRequest(t *testing.T) {
	wantErrors(t, boundstest.Created(t, scheme, validClusterRequest(), ValidateClusterRequest))
	none := validClusterRequest()
	none.Spec.Purpose = ""
	wantErrors(t, boundstest.Created(t, scheme, none, ValidateClusterRequest), "spec.purpose: Required value")
	for what, change := range map[string]func(*openmcp.ClusterRequest){
		"purpose": func(r *openmcp.ClusterRequest) { r.Spec.Purpose = "other" },
		"waiting": func(r *openmcp.ClusterRequest) { r.Spec.WaitForClusterDeletion = new(false) },
	} {
		t.Run(what, func(t *testing.T) {
			changed := validClusterRequest()
			change(changed)
			wantErrors(t, boundstest.Updated(t, scheme, changed, validClusterRequest(), ValidateClusterRequestUpdate), "spec: Invalid value: spec is immutable")
		})
	}
	labelled := validClusterRequest()
	labelled.Labels = map[string]string{"a": "b"}
	wantErrors(t, boundstest.Updated(t, scheme, labelled, validClusterRequest(), ValidateClusterRequestUpdate))
}

func TestClusterRequestStatus_ClusterIsSetOnce(t *testing.T) {
	given := func(name string) *openmcp.ClusterRequest {
		r := validClusterRequest()
		r.Status.Status = openmcp.Status{ObservedGeneration: 1, Phase: "Granted"}
		if name != "" {
			r.Status.Cluster = &openmcp.ObjectReference{Namespace: "ns", Name: name}
		}
		return r
	}
	wantErrors(t, boundstest.Updated(t, scheme, given("a"), given(""), ValidateClusterRequestStatusUpdate))
	wantErrors(t, boundstest.Updated(t, scheme, given("a"), given("a"), ValidateClusterRequestStatusUpdate))
	wantErrors(t, boundstest.Updated(t, scheme, given("b"), given("a"), ValidateClusterRequestStatusUpdate), `status.cluster: Invalid value: "ns/b": cluster is immutable`)
	wantErrors(t, boundstest.Updated(t, scheme, given(""), given("a"), ValidateClusterRequestStatusUpdate), "status: Invalid value: cluster may not be removed once set")
	lost := given("")
	lost.Status = openmcp.ClusterRequestStatus{}
	wantErrors(t, boundstest.Updated(t, scheme, lost, given("a"), ValidateClusterRequestStatusUpdate))
	nameless := given("a")
	nameless.Status.Cluster = &openmcp.ObjectReference{}
	wantErrors(t, boundstest.Updated(t, scheme, nameless, given(""), ValidateClusterRequestStatusUpdate), "status.cluster.name: Required value", "status.cluster.namespace: Required value")
}

func TestStatus(t *testing.T) {
	condition := metav1.Condition{Type: "Gardener_APIServerAvailable", Status: "True", Reason: "Gardener_True", LastTransitionTime: metav1.Unix(1, 0)}
	with := func(f func(*metav1.Condition)) func(*openmcp.Cluster) {
		return func(c *openmcp.Cluster) {
			bad := condition
			f(&bad)
			c.Status.Phase, c.Status.Conditions = "Ready", []metav1.Condition{bad}
		}
	}
	for _, c := range []change[*openmcp.Cluster]{
		{"nothing", func(*openmcp.Cluster) {}, nil},
		{"a condition", with(func(*metav1.Condition) {}), nil},
		{"only a phase", func(c *openmcp.Cluster) { c.Status.Phase = "Ready" }, nil},
		{"only a generation", func(c *openmcp.Cluster) { c.Status.ObservedGeneration = 1; c.Status.APIServer = "https://a" }, nil},
		{"zeros, as clients send them", func(c *openmcp.Cluster) { c.Status.Conditions = []metav1.Condition{condition} }, nil},
		{"a negative generation", func(c *openmcp.Cluster) { c.Status.ObservedGeneration = -1 }, []string{"status.observedGeneration: Invalid value: -1"}},
		{"a long type", with(func(c *metav1.Condition) { c.Type = strings.Repeat("x", 316) }), nil},
		{"a longer type", with(func(c *metav1.Condition) { c.Type = strings.Repeat("x", 317) }), []string{"status.conditions[0].type: Invalid value"}},
		{"a bad type", with(func(c *metav1.Condition) { c.Type = "a b" }), []string{"status.conditions[0].type: Invalid value"}},
		{"no reason", with(func(c *metav1.Condition) { c.Reason = "" }), []string{"status.conditions[0].reason: Required value"}},
		{"a bad reason", with(func(c *metav1.Condition) { c.Reason = "a b" }), []string{"status.conditions[0].reason: Invalid value"}},
		{"the longest reason", with(func(c *metav1.Condition) { c.Reason = strings.Repeat("x", 1024) }), nil},
		{"a huge reason", with(func(c *metav1.Condition) { c.Reason = strings.Repeat("x", 1025) }), []string{"status.conditions[0].reason: Too long"}},
		{"a huge message", with(func(c *metav1.Condition) { c.Message = strings.Repeat("x", 32769) }), []string{"status.conditions[0].message: Too long"}},
		{"no time", with(func(c *metav1.Condition) { c.LastTransitionTime = metav1.Time{} }), []string{"status.conditions[0].lastTransitionTime: Required value"}},
		{"twice the same", func(c *openmcp.Cluster) {
			c.Status.Phase, c.Status.Conditions = "Ready", []metav1.Condition{condition, condition}
		}, []string{"status.conditions[1]: Duplicate value"}},
		{"a nameless endpoint", func(c *openmcp.Cluster) {
			c.Status.Phase, c.Status.Endpoints = "Ready", openmcp.Endpoints{{URL: "https://a"}}
		}, []string{"status.endpoints[0].name: Required value"}},
		{"what is no object", func(c *openmcp.Cluster) {
			c.Status.Phase, c.Status.ProviderStatus = "Ready", &runtime.RawExtension{Raw: []byte(`[1]`)}
		}, []string{"status.providerStatus: Invalid value: must be an object"}},
		{"an object", func(c *openmcp.Cluster) {
			c.Status.Phase, c.Status.ProviderStatus = "Ready", &runtime.RawExtension{Raw: []byte(` {"a":1}`)}
		}, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			cluster := validCluster()
			c.change(cluster)
			wantErrors(t, boundstest.Updated(t, scheme, cluster, validCluster(), ValidateClusterStatusUpdate), c.want...)
		})
	}
	access := validAccessRequest()
	access.Status.SecretRef, access.Status.ObservedGeneration = &openmcp.LocalObjectReference{Name: "a.kubeconfig"}, -1
	wantErrors(t, boundstest.Updated(t, scheme, access, validAccessRequest(), ValidateAccessRequestStatusUpdate), "status.observedGeneration: Invalid value: -1")
	access.Status.ObservedGeneration = 1
	wantErrors(t, boundstest.Updated(t, scheme, access, validAccessRequest(), ValidateAccessRequestStatusUpdate))
}

func rule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}
}

func validAccessRequest() *openmcp.AccessRequest {
	m := stored()
	m.CreationTimestamp = metav1.NewTime(time.Unix(1000, 0))
	return &openmcp.AccessRequest{ObjectMeta: m, Spec: openmcp.AccessRequestSpec{Token: &openmcp.TokenConfig{}}}
}
