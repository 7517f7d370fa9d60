// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprovider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

func TestOIDCRights_PutPrefixesBeforeUsersAndGroups(t *testing.T) {
	config := &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{
		Name: "corp", GroupsPrefix: new("g:"), RoleBindings: []v1alpha1.RoleBindings{{
			Subjects: []rbacv1.Subject{
				{Kind: "User", Name: "ann"}, {Kind: "User", Name: "::bob"}, {Kind: "Group", Name: "devs"},
				{Kind: "Group", Name: "::system:masters"}, {Kind: "ServiceAccount", Name: "robot", Namespace: "default"},
			},
			RoleRefs: []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: "view"}, {Kind: "Role", Name: "my", Namespace: "web"}},
		}},
	}, Roles: []v1alpha1.PermissionsRequest{{Name: "my", Namespace: "web"}, {}}}
	rights, err := oidcRights(config, "h")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, object := range rights.objects {
		got = append(got, key(object))
	}
	want := []string{"Role web/my", "ClusterRole openmcp:h:1", "ClusterRoleBinding openmcp:h:0:0", "RoleBinding web/openmcp:h:0:1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var subjects []string
	for _, subject := range rights.objects[2].(*rbacv1.ClusterRoleBinding).Subjects {
		subjects = append(subjects, subject.Name)
	}
	if want := []string{"corp:ann", "bob", "g:devs", "system:masters", "robot"}; !slices.Equal(subjects, want) {
		t.Errorf("got %v, want %v", subjects, want)
	}
}

func TestTokenRights_MakesTheNamespacesUnlessToldNotTo(t *testing.T) {
	rights, err := tokenRights(&v1alpha1.TokenConfig{Permissions: []v1alpha1.PermissionsRequest{
		{Namespace: "made"}, {Namespace: "not-made", DisableAutomaticNamespaceCreation: true}, {},
	}}, "h")
	if want := []string{"accessrequests", "made"}; err != nil || !slices.Equal(rights.namespaces, want) {
		t.Errorf("makes %v, %v", rights.namespaces, err)
	}
}

func TestTokenRights_TwoRolesOfOneName(t *testing.T) {
	of := func(permissions ...v1alpha1.PermissionsRequest) error {
		_, err := tokenRights(&v1alpha1.TokenConfig{Permissions: permissions}, "h")
		return err
	}
	if err := of(v1alpha1.PermissionsRequest{Name: "a"}, v1alpha1.PermissionsRequest{Name: "a", Namespace: "b"}); err != nil {
		t.Errorf("a Role and a ClusterRole: %v", err)
	}
	err := of(v1alpha1.PermissionsRequest{Name: "a"}, v1alpha1.PermissionsRequest{Name: "a"})
	if reasonOf(err, "") != v1alpha1.ReasonConfigurationProblem || !strings.Contains(err.Error(), "two entries make the ClusterRole a") {
		t.Errorf("got %v", err)
	}
}

func TestRenewalOf_IsSpreadOutAndEndsAt80Percent(t *testing.T) {
	created := time.Now()
	seen := map[time.Duration]bool{}
	for i := range 200 {
		after := renewalOf(request("a", types.UID(strings.Repeat("x", i))), created, created.Add(100*time.Hour)).Sub(created)
		if after < 75*time.Hour || after > 80*time.Hour {
			t.Errorf("renewed after %s of 100h", after)
		}
		seen[after.Truncate(time.Minute)] = true
	}
	if len(seen) < 100 {
		t.Errorf("200 renewals are in %d different minutes", len(seen))
	}
}

func TestOIDCKubeconfig_HasTheArgumentsOfThePlugin(t *testing.T) {
	data, err := oidcKubeconfig(&rest.Config{Host: "https://a:1"},
		&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue"}},
		&v1alpha1.OIDCProviderConfig{Name: "corp", Issuer: "https://i", ClientID: "c", ExtraScopes: []string{"x", "y"}})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	exec := config.AuthInfos["corp"].Exec
	want := "kubectl oidc-login get-token --grant-type=auto --oidc-issuer-url=https://i --oidc-client-id=c " +
		"--oidc-extra-scope=x --oidc-extra-scope=y --oidc-pkce-method=auto"
	got := strings.Join(append([]string{exec.Command}, exec.Args...), " ")
	if got != want || exec.APIVersion != "client.authentication.k8s.io/v1beta1" {
		t.Errorf("got %s of %s", got, exec.APIVersion)
	}
	if config.CurrentContext != "teams--blue--corp" || config.Clusters["teams--blue"].Server != "https://a:1" {
		t.Errorf("got %+v", config)
	}
}

func TestTrusted_TheFirstKeepsAnIssuer(t *testing.T) {
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
	if len(providers) != 1 || *providers[0].UsernamePrefix != "corp:" || reasonOf(err, "") != reasonOIDCConflict {
		t.Errorf("another prefix: %+v, %v", providers, err)
	}
	first.Status.Phase = v1alpha1.REQUEST_DENIED
	if providers, err := trusted([]v1alpha1.AccessRequest{first}, &other); len(providers) != 1 || err != nil {
		t.Errorf("after the first is denied: %+v, %v", providers, err)
	}
}

// A requester who names an issuer must not become a user of another issuer by it.
func TestTrusted_NobodyPassesForUsersOfAnotherIssuer(t *testing.T) {
	request := func(uid types.UID, age time.Duration, issuer, username, groups string) v1alpha1.AccessRequest {
		ar := v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{UID: uid, CreationTimestamp: metav1.NewTime(time.Now().Add(-age))}}
		ar.Spec.OIDC = &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{
			Name: "x", Issuer: issuer, UsernamePrefix: &username, GroupsPrefix: &groups,
		}}
		return ar
	}
	corp := request("corp", time.Minute, "https://corp", "corp:", "corp:")
	rememberTrust(&corp)
	for name, attack := range map[string]v1alpha1.AccessRequest{
		"the same users":  request("evil", time.Second, "https://evil", "corp:", "evil:"),
		"the same groups": request("evil", time.Second, "https://evil", "evil:", "corp:"),
		"some users":      request("evil", time.Second, "https://evil", "corp:an", "evil:"),
		"any users":       request("evil", time.Second, "https://evil", "", "evil:"),
		"an older request that was about something else": request("evil", time.Hour, "https://evil", "corp:", "corp:"),
	} {
		providers, err := trusted([]v1alpha1.AccessRequest{corp}, &attack)
		if len(providers) != 1 || providers[0].Issuer != "https://corp" || reasonOf(err, "") != reasonOIDCConflict {
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
	// Who has asked for something else meanwhile is trusted for that, and comes back like everybody.
	corp.Spec.OIDC.Issuer = "https://new"
	forgetTrust(&corp, true)
	corp.Spec.OIDC.Issuer = "https://corp"
	if trustRank(&corp) == 0 {
		t.Error("what is not asked for any more is still reserved")
	}
}

// truster trusts all issuers but those that it refuses.
type truster struct {
	Provider
	refuses error
	asked   []string
	// before is done before anything else.
	before func()
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

func TestTrust_ARefusedIssuerIsItsOwnRequestsError(t *testing.T) {
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
	rememberTrust(good)
	rememberTrust(bad)
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue", UID: "1"}}
	hub := fake.NewClientBuilder().WithScheme(hubScheme).WithObjects(good, bad).
		WithIndex(&v1alpha1.AccessRequest{}, byCluster, func(client.Object) []string { return []string{"teams/blue"} }).Build()
	provider := &truster{refuses: errors.Join(RefusedIssuers{"https://bad": errors.New("it does not answer")})}
	r := newAccess(identity{name: "p", environment: "e"}, provider, hub, hub, &events.FakeRecorder{})

	if err := r.trust(t.Context(), cluster, good); err != nil || len(provider.asked) != 2 {
		t.Errorf("another's issuer is refused: %v of %v", err, provider.asked)
	}
	err := r.trust(t.Context(), cluster, bad)
	want := "spec.oidc.issuer: the cluster cannot trust https://bad: it does not answer"
	if reasonOf(err, "") != "OIDCIssuerRefused" || err.Error() != want {
		t.Errorf("its own is: %v", err)
	}
	bad.DeletionTimestamp = new(metav1.Now())
	if err := r.trust(t.Context(), cluster, bad); err != nil {
		t.Errorf("it cannot be deleted: %v", err)
	}
	provider.refuses = errors.New("the cluster does not answer")
	if err := r.trust(t.Context(), cluster, good); err == nil || reasonOf(err, "none") != "none" {
		t.Errorf("nobody knows whom it trusts: %v", err)
	}
}

func TestTrust_ARestartIsWaitedForAndSaid(t *testing.T) {
	ar := byIssuer("corp", "https://corp", nil, "view")
	r := newRefusing(t, ar)
	r.truster.refuses = NotYet{Message: "it is restarted"}
	err := r.gives(ar)
	if reasonOf(err, "") != reasonClusterNotReady || err.Error() != "it is restarted" {
		t.Fatalf("%v", err)
	}
	other := byIssuer("other", "https://other", nil, "view")
	if _ = r.gives(other); !slices.Equal(r.issuers(), []string{"https://corp", "https://other"}) {
		t.Errorf("meanwhile another request has the cluster trust %v", r.issuers())
	}
	for _, failure := range []error{err, fmt.Errorf("taking access back: %w", err)} {
		ar.ResourceVersion = ""
		hub := fake.NewClientBuilder().WithScheme(hubScheme).WithObjects(ar).WithStatusSubresource(ar).Build()
		r.client = hub
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(ar), ar); err != nil {
			t.Fatal(err)
		}
		result, err := r.failed(t.Context(), ar.DeepCopy(), ar, failure)
		said := ar.Status.Conditions[0]
		if err != nil || result.RequeueAfter != retryInterval || said.Reason != "ClusterNotReady" || said.Message != failure.Error() {
			t.Errorf("%+v, %v: %+v", result, err, said)
		}
	}
}

func TestNextLook_ComesBeforeTheRenewalAndSpreadsOut(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 200 {
		look := nextLook(time.Now().Add(time.Hour))
		if look < ResyncInterval || look > 2*ResyncInterval {
			t.Errorf("looks again after %s", look)
		}
		seen[look.Truncate(time.Second)] = true
	}
	if len(seen) < 50 {
		t.Errorf("200 looks are in %d different seconds", len(seen))
	}
	if look := nextLook(time.Now().Add(time.Minute)); look > time.Minute {
		t.Errorf("a renewal in a minute waits for %s", look)
	}
	if look := nextLook(time.Now().Add(-time.Minute)); look <= 0 || look > time.Minute {
		t.Errorf("a renewal that is overdue comes after %s", look)
	}
	if look := nextLook(time.Time{}); look < ResyncInterval {
		t.Errorf("what is never renewed is looked at after %s", look)
	}
}

func TestOptions_SayWhatIsWrong(t *testing.T) {
	for want, change := range map[string]func(*Options){
		`--provider-name: ""`:  func(o *Options) { o.ProviderName = "" },
		`--environment: "A.B"`: func(o *Options) { o.Environment = "A.B" },
		`--verbosity: "loud" is none of DEBUG, INFO and ERROR`: func(o *Options) { o.verbosity = "loud" },
		"--namespace: clusterhub-access has the token sources": func(o *Options) { o.Namespace = "clusterhub-access" },
		"--kubeconfig: stat /none":                             func(o *Options) { o.kubeconfig = "/none" },
	} {
		o := &Options{ProviderName: "p", Environment: "e", Namespace: "n", verbosity: "Debug"}
		change(o)
		if err := o.complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
