// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
)

func request(name string, uid types.UID) *v1alpha1.AccessRequest {
	return &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: name, UID: uid}}
}

func TestTrusted_FirstRequestOwnsIssuer(t *testing.T) {
	request := func(uid types.UID, age time.Duration, prefix *string) v1alpha1.AccessRequest {
		ar := v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{UID: uid, CreationTimestamp: metav1.NewTime(time.Now().Add(-age))}}
		ar.Spec.OIDC = &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{
			Name: "corp", Issuer: "https://i", UsernamePrefix: prefix,
		}}
		return ar
	}
	first, same, other := request("1", time.Hour, nil), request("2", time.Minute, new("corp:")), request("3", time.Second, new(""))
	if providers, err := trusted([]v1alpha1.AccessRequest{other, first}, &same); len(providers) != 1 || err != nil {
		t.Errorf("the same again: %d, %v", len(providers), err)
	}
	providers, err := trusted([]v1alpha1.AccessRequest{first}, &other)
	if len(providers) != 1 || *providers[0].UsernamePrefix != "corp:" || hub.ReasonOf(err, "") != hub.ReasonOIDCConflict {
		t.Errorf("another prefix: %+v, %v", providers, err)
	}
	first.Status.Phase = v1alpha1.REQUEST_DENIED
	if providers, err := trusted([]v1alpha1.AccessRequest{first}, &other); len(providers) != 1 || err != nil {
		t.Errorf("after the first is denied: %+v, %v", providers, err)
	}
}

// TestTrusted_NoImpersonationAcrossIssuers: a requester who names an issuer must not become a user of another issuer.
func TestTrusted_NoImpersonationAcrossIssuers(t *testing.T) {
	request := func(uid types.UID, age time.Duration, issuer, username, groups string) v1alpha1.AccessRequest {
		ar := v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{UID: uid, CreationTimestamp: metav1.NewTime(time.Now().Add(-age))}}
		ar.Spec.OIDC = &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{
			Name: "x", Issuer: issuer, UsernamePrefix: &username, GroupsPrefix: &groups,
		}}
		return ar
	}
	corp := request("corp", time.Minute, "https://corp", "corp:", "corp:")
	remember(&corp)
	for name, attack := range map[string]v1alpha1.AccessRequest{
		"the same users":  request("evil", time.Second, "https://evil", "corp:", "evil:"),
		"the same groups": request("evil", time.Second, "https://evil", "evil:", "corp:"),
		"some users":      request("evil", time.Second, "https://evil", "corp:an", "evil:"),
		"any users":       request("evil", time.Second, "https://evil", "", "evil:"),
		"an older request that was about something else": request("evil", time.Hour, "https://evil", "corp:", "corp:"),
	} {
		providers, err := trusted([]v1alpha1.AccessRequest{corp}, &attack)
		if len(providers) != 1 || providers[0].Issuer != "https://corp" || hub.ReasonOf(err, "") != hub.ReasonOIDCConflict {
			t.Errorf("%s: %+v, %v", name, providers, err)
		}
		if providers, err := trusted([]v1alpha1.AccessRequest{attack}, &corp); len(providers) != 1 || err != nil {
			t.Errorf("%s: who was trusted is not: %+v, %v", name, providers, err)
		}
	}
	other := request("other", time.Second, "https://other", "other:", "other:")
	if providers, err := trusted([]v1alpha1.AccessRequest{corp}, &other); len(providers) != 2 || err != nil {
		t.Errorf("another one's own users: %+v, %v", providers, err)
	}
	// A request that asked for something else in between is trusted for that, and returns like all others.
	corp.Spec.OIDC.Issuer = "https://new"
	forget(&corp, true)
	corp.Spec.OIDC.Issuer = "https://corp"
	if trustRank(&corp) == 0 {
		t.Error("a provider that is no longer requested is still reserved")
	}
}

// truster trusts all issuers except those that it rejects.
type truster struct {
	clusterprovider.Provider
	refuses error
	asked   []string
	// before is called before anything else.
	before func()
}

func (f *truster) Connect(context.Context, *v1alpha1.Cluster) (*rest.Config, error) {
	return &rest.Config{Host: "https://blue"}, nil
}

func (f *truster) TrustOIDC(_ context.Context, _ *v1alpha1.Cluster, providers []v1alpha1.OIDCProviderConfig) error {
	if f.before != nil {
		f.before()
	}
	f.asked = nil
	for _, provider := range providers {
		f.asked = append(f.asked, provider.Issuer)
	}
	return f.refuses
}

func TestTrust_RejectedIssuerAffectsOnlyItsRequest(t *testing.T) {
	request := func(name string) *v1alpha1.AccessRequest {
		ar := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{
			Namespace: "teams", Name: name, UID: types.UID(name), Finalizers: []string{"e.p.clusters.openmcp.cloud/accessrequest"},
			Labels: map[string]string{v1alpha1.ProviderLabel: "p", v1alpha1.ProfileLabel: "e.p.c"},
		}}
		ar.Spec.ClusterRef = &v1alpha1.ObjectReference{Namespace: "teams", Name: "blue"}
		ar.Spec.OIDC = &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{Name: name, Issuer: "https://" + name}}
		return ar
	}
	good, bad := request("good"), request("bad")
	remember(good)
	remember(bad)
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue", UID: "1"}}
	server := fake.NewClientBuilder().WithScheme(hub.Scheme).WithObjects(good, bad).
		WithIndex(&v1alpha1.AccessRequest{}, hub.ByCluster, func(client.Object) []string { return []string{"teams/blue"} }).Build()
	provider := &truster{refuses: errors.Join(clusterprovider.RefusedIssuers{"https://bad": errors.New("it does not respond")})}
	r := New(hub.Identity{Name: "p", Environment: "e"}, provider, server)

	if err := r.notify(t.Context(), cluster, good); err != nil || len(provider.asked) != 2 {
		t.Errorf("another's issuer is refused: %v of %v", err, provider.asked)
	}
	err := r.notify(t.Context(), cluster, bad)
	want := "spec.oidc.issuer: the cluster cannot trust https://bad: it does not respond"
	if hub.ReasonOf(err, "") != "OIDCIssuerRefused" || err.Error() != want {
		t.Errorf("its own is: %v", err)
	}
	bad.DeletionTimestamp = new(metav1.Now())
	if err := r.notify(t.Context(), cluster, bad); err != nil {
		t.Errorf("it cannot be deleted: %v", err)
	}
	provider.refuses = errors.New("the cluster does not respond")
	if err := r.notify(t.Context(), cluster, good); err == nil || hub.ReasonOf(err, "none") != "none" {
		t.Errorf("unknown trust: %v", err)
	}
}

// TestFitToTrust: a requester with an own issuer must not get names that have rights in the cluster.
func TestFitToTrust(t *testing.T) {
	subject := func(kind, name string) rbacv1.Subject { return rbacv1.Subject{Kind: kind, Name: name} }
	ask := func(username, groups *string) *v1alpha1.AccessRequest {
		ar := request("a", "1")
		ar.Spec.OIDC = &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{
			Name: "corp", Issuer: "https://corp", UsernamePrefix: username, GroupsPrefix: groups,
			RoleBindings: []v1alpha1.RoleBindings{{
				Subjects: []rbacv1.Subject{subject("User", "ann")}, RoleRefs: []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: "view"}},
			}},
		}}
		return ar
	}
	nothing := ask(nil, nil)
	nothing.Spec.OIDC.RoleBindings = []v1alpha1.RoleBindings{{Subjects: []rbacv1.Subject{}, RoleRefs: []v1alpha1.RoleRef{}}}
	trusted := ask(new(""), nil)
	remember(trusted)
	asItIs := func(issuer, name string) *v1alpha1.AccessRequest {
		ar := request("platform", "2")
		ar.Spec.OIDC = &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{
			Name: "p", Issuer: issuer, RoleBindings: []v1alpha1.RoleBindings{{Subjects: []rbacv1.Subject{subject("Group", name)}}},
		}}
		return ar
	}
	blue := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue", UID: "blue-1"}}
	own := hub.Identity{Name: "p", Environment: "e"}
	ours := own.AccessLabels(request("other", "2"))
	for name, c := range map[string]struct {
		ar       *v1alpha1.AccessRequest
		bound    []rbacv1.Subject
		byUs     bool
		insecure bool
		refused  bool
		reason   string
		another  *v1alpha1.AccessRequest
	}{
		"its own name":                                         {ar: ask(nil, nil)},
		"prefixes with separators":                             {ar: ask(new("x/"), new("y#"))},
		"no prefix of users":                                   {ar: ask(new(""), nil), refused: true},
		"no prefix of groups":                                  {ar: ask(nil, new("")), refused: true},
		"a prefix without a separator":                         {ar: ask(new("corp"), nil), refused: true},
		"a prefix that ends like a name":                       {ar: ask(new("dev-"), nil), refused: true},
		"a prefix of the cluster":                              {ar: ask(new("system:node:"), nil), refused: true},
		"no role for anybody":                                  {ar: nothing, refused: true, reason: v1alpha1.ReasonConfigurationProblem},
		"by a flag, no prefix":                                 {ar: ask(new(""), new("")), insecure: true},
		"by a flag, but bound":                                 {ar: ask(new(""), nil), insecure: true, bound: []rbacv1.Subject{subject("User", "kubernetes-admin")}, refused: true},
		"what has been trusted":                                {ar: trusted, bound: []rbacv1.Subject{subject("User", "corp:x")}},
		"a prefix that another's users have":                   {ar: ask(nil, nil), bound: []rbacv1.Subject{subject("User", "corp:boss")}, refused: true},
		"a prefix that groups have":                            {ar: ask(nil, nil), bound: []rbacv1.Subject{subject("Group", "corp:admins")}, refused: true},
		"a name that another request gives rights to as it is": {ar: ask(nil, nil), another: asItIs("https://other", "::corp:admins"), refused: true},
		"a name that its own issuer's requests give rights to": {ar: ask(nil, nil), another: asItIs("https://corp", "::corp:admins")},
		"another name of another request":                      {ar: ask(nil, nil), another: asItIs("https://other", "::admins")},
		"a name of another request's issuer":                   {ar: ask(nil, nil), another: asItIs("https://other", "corp:admins")},
		"of a request of ours":                                 {ar: ask(nil, nil), bound: []rbacv1.Subject{subject("User", "corp:boss")}, byUs: true},
		"other subjects": {ar: ask(nil, nil), bound: []rbacv1.Subject{
			subject("User", "corporal"), subject("ServiceAccount", "corp:x"), subject("Group", "system:masters"),
		}},
	} {
		for kind, binding := range map[string]client.Object{
			"ClusterRoleBinding": &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Subjects: c.bound},
			"RoleBinding":        &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b"}, Subjects: c.bound},
		} {
			if c.byUs {
				binding.SetLabels(ours)
			}
			server := fake.NewClientBuilder().WithScheme(hub.Scheme).
				WithIndex(&v1alpha1.AccessRequest{}, hub.ByCluster, func(client.Object) []string { return []string{"teams/blue"} })
			if c.another != nil {
				server.WithObjects(c.another)
			}
			r := New(own, nil, server.Build())
			r.AnyPrefix = c.insecure
			to := fake.NewClientBuilder().WithScheme(rights.Scheme).WithObjects(binding).Build()
			err := r.fitToTrust(t.Context(), c.ar, blue, to)
			if c.refused != (err != nil) || err != nil && hub.ReasonOf(err, "") != cmp.Or(c.reason, hub.ReasonOIDCPrefixRefused) {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
		}
	}
}
