// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

func TestEndpoints_Get(t *testing.T) {
	var s v1alpha1.ClusterStatus
	if url, ok := s.Endpoints.Get("a"); ok || url != "" {
		t.Errorf("nothing has %q", url)
	}
	s.Endpoints.Set(v1alpha1.APISERVER_ENDPOINT_EXTERNAL, "https://one")
	s.Endpoints.Set(v1alpha1.APISERVER_ENDPOINT_INTERNAL, "https://two")
	s.Endpoints.Set("apiserver-external", "https://three")
	if got := fmt.Sprint(s.Endpoints); got != "[{apiserver-external https://three} {apiserver-internal https://two}]" {
		t.Error(got)
	}
	if url, ok := s.Endpoints.Get("apiserver-internal"); !ok || url != "https://two" {
		t.Errorf("got %q", url)
	}
}

func TestProviderStatus_RoundTrips(t *testing.T) {
	type own struct{ Shoot string }
	var s v1alpha1.ClusterStatus
	read := own{"untouched"}
	if err := s.GetProviderStatus(&read); err != nil || read.Shoot != "untouched" {
		t.Errorf("of nothing: %v, %v", read, err)
	}
	if err := s.SetProviderStatus(own{"a"}); err != nil {
		t.Fatal(err)
	}
	if err := s.GetProviderStatus(&read); err != nil || read.Shoot != "a" {
		t.Errorf("got %v, %v", read, err)
	}
	if err := s.SetProviderStatus(func() {}); err == nil || string(s.ProviderStatus.Raw) != `{"Shoot":"a"}` {
		t.Errorf("what is no JSON: %v, %s", err, s.ProviderStatus.Raw)
	}
}

func TestCluster_RequestsFromFinalizers(t *testing.T) {
	request := v1alpha1.ClusterRequest{ObjectMeta: metav1.ObjectMeta{UID: "u1"}, Spec: v1alpha1.ClusterRequestSpec{Purpose: "mcp"}}
	if got := request.FinalizerForCluster(); got != "request.clusters.openmcp.cloud/u1" {
		t.Error(got)
	}
	c := v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{
		"request.clusters.openmcp.cloud/u1", "clusters.openmcp.cloud/finalizer", "request.clusters.openmcp.cloud/u2",
		"request.clusters.openmcp.cloud/u1", v1alpha1.AccessFinalizer,
	}}, Spec: v1alpha1.ClusterSpec{Purposes: []string{"a", "b"}}}
	if got := c.GetRequestUIDs(); !got.Equal(sets.New("u1", "u2")) || c.GetTenancyCount() != 2 {
		t.Errorf("got %v, %d", got, c.GetTenancyCount())
	}
	if !slices.Equal(c.GetPurposes(), []string{"a", "b"}) || !slices.Equal(request.GetPurposes(), []string{"mcp"}) {
		t.Error(c.GetPurposes(), request.GetPurposes())
	}
}

func TestRequests_Phase(t *testing.T) {
	for phase, want := range map[string][3]bool{
		"": {true}, "Pending": {true}, "Granted": {1: true}, "Denied": {2: true}, "Else": {},
	} {
		a := v1alpha1.AccessRequestStatus{Status: v1alpha1.Status{Phase: phase}}
		c := v1alpha1.ClusterRequestStatus{Status: v1alpha1.Status{Phase: phase}}
		if got := [3]bool{a.IsPending(), a.IsGranted(), a.IsDenied()}; got != want {
			t.Errorf("access, %q: %v", phase, got)
		}
		if got := [3]bool{c.IsPending(), c.IsGranted(), c.IsDenied()}; got != want {
			t.Errorf("cluster, %q: %v", phase, got)
		}
	}
}

func TestOIDC_DefaultClaimsAndPrefixes(t *testing.T) {
	var none *v1alpha1.OIDCProviderConfig
	if none.Default() != nil {
		t.Error("nothing has defaults")
	}
	for name, o := range map[string]*v1alpha1.OIDCProviderConfig{
		"not given": {}, "empty": {GroupsClaim: new(""), UsernameClaim: new("")},
	} {
		if o.Default() != o || *o.GroupsClaim != "groups" || *o.UsernameClaim != "sub" || o.GroupsPrefix != nil || o.UsernamePrefix != nil {
			t.Errorf("%s: got %+v", name, o)
		}
	}
	given := &v1alpha1.OIDCProviderConfig{
		GroupsClaim: new("g"), UsernameClaim: new("email"), GroupsPrefix: new("my-group"), UsernamePrefix: new(""),
	}
	given.Default()
	if *given.GroupsClaim != "g" || *given.UsernameClaim != "email" || *given.GroupsPrefix != "my-group" || *given.UsernamePrefix != "" {
		t.Errorf("got %+v", given)
	}
}

func TestOIDC_PrefixesAreUnchanged(t *testing.T) {
	for _, c := range []struct {
		given *string
		want  string
	}{{nil, "corp:"}, {new(""), ""}, {new("my-user:"), "my-user:"}, {new("my-user"), "my-user"}} {
		o := (&v1alpha1.OIDCProviderConfig{Name: "corp", GroupsPrefix: c.given, UsernamePrefix: c.given}).Default()
		if g, u := o.GetGroupsPrefix(), o.GetUsernamePrefix(); g != c.want || u != c.want {
			t.Errorf("got %q and %q, want %q", g, u, c.want)
		}
	}
}
