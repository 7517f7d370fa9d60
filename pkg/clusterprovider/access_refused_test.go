// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprovider

import (
	"context"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// refusing is a hub with the Cluster blue, whose rights are in in.
type refusing struct {
	*access
	t       *testing.T
	in      client.Client
	truster *truster
	cluster *v1alpha1.Cluster
}

func newRefusing(t *testing.T, requests ...client.Object) *refusing {
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue", UID: "blue-1"}}
	hub := fake.NewClientBuilder().WithScheme(hubScheme).WithObjects(append(requests, cluster)...).
		WithIndex(&v1alpha1.AccessRequest{}, byCluster, func(client.Object) []string { return []string{"teams/blue"} }).Build()
	trusts := &truster{}
	return &refusing{
		access: newAccess(identity{name: "p", environment: "e"}, trusts, hub, hub, &events.FakeRecorder{}), t: t, truster: trusts, cluster: cluster,
		in: fake.NewClientBuilder().WithScheme(targetScheme).Build(),
	}
}

// gives gives a request its access as grant does.
func (r *refusing) gives(ar *v1alpha1.AccessRequest) error {
	to := &target{Client: r.in, labels: r.accessLabels(ar), origin: r.origin(ar, r.cluster)}
	config := &rest.Config{Host: "https://blue"}
	_, err := r.giveOrTakeBack(context.WithoutCancel(r.t.Context()), ar, r.cluster, config, to)
	return err
}

func (r *refusing) issuers() []string { return r.truster.asked }

func byIssuer(name, issuer string, prefix *string, role string) *v1alpha1.AccessRequest {
	ar := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: "teams", Name: name, UID: types.UID(name), Generation: 1, Finalizers: []string{"e.p.clusters.openmcp.cloud/accessrequest"},
		Labels: map[string]string{v1alpha1.ProviderLabel: "p", v1alpha1.ProfileLabel: "e.p.c"},
	}}
	ar.Spec.ClusterRef = &v1alpha1.ObjectReference{Namespace: "teams", Name: "blue"}
	ar.Spec.OIDC = &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{
		Name: name, Issuer: issuer, UsernamePrefix: prefix,
		RoleBindings: []v1alpha1.RoleBindings{{
			Subjects: []rbacv1.Subject{{Kind: "User", Name: "ann"}}, RoleRefs: []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: role}},
		}},
	}}
	return ar
}

// A request that was refused is held by the provider like any other, and must not come in with the next one.
func TestRefused_NoOtherRequestBringsItsIssuerIn(t *testing.T) {
	evil, good := byIssuer("evil", "https://evil", new(""), "view"), byIssuer("good", "https://good", nil, "view")
	r := newRefusing(t, evil, good)
	if err := r.gives(evil); reasonOf(err, "") != reasonOIDCPrefixRefused {
		t.Fatalf("evil: %v", err)
	}
	if slices.Contains(r.issuers(), "https://evil") {
		t.Errorf("what is refused is trusted: %v", r.issuers())
	}
	if err := r.gives(good); err != nil {
		t.Fatalf("good: %v", err)
	}
	if got := r.issuers(); !slices.Equal(got, []string{"https://good"}) {
		t.Errorf("after another's grant the cluster trusts %v", got)
	}
	// The end of another, after a restart.
	r.fit.Clear()
	rememberTrust(good)
	good.DeletionTimestamp = new(metav1.Now())
	if err := r.trust(t.Context(), r.cluster, good); err != nil || len(r.truster.asked) != 0 {
		t.Errorf("after another's end the cluster trusts %v, %v", r.issuers(), err)
	}
}

func TestRefused_WhatTheRequestHadBeforeIsTakenBack(t *testing.T) {
	ar := byIssuer("corp", "https://corp", nil, "cluster-admin")
	r := newRefusing(t, ar)
	if err := r.gives(ar); err != nil {
		t.Fatal(err)
	}
	bindings := func() int {
		list := &rbacv1.ClusterRoleBindingList{}
		if err := r.in.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	rememberTrust(ar)
	meta.SetStatusCondition(&ar.Status.Conditions, metav1.Condition{Type: ConditionAccess, Status: "True", Reason: "Granted", ObservedGeneration: 1})
	if bindings() != 1 || !slices.Equal(r.issuers(), []string{"https://corp"}) {
		t.Fatalf("%d bindings, trusts %v", bindings(), r.issuers())
	}
	ar.Generation, ar.Spec.OIDC.UsernamePrefix = 2, new("")
	ar.Spec.OIDC.RoleBindings[0].RoleRefs[0].Name = "view"
	if err := r.gives(ar); reasonOf(err, "") != reasonOIDCPrefixRefused {
		t.Errorf("%v", err)
	}
	if bindings() != 0 || len(r.truster.asked) != 0 {
		t.Errorf("%d bindings are left, and the cluster trusts %v", bindings(), r.issuers())
	}
}
