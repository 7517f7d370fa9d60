// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprovider

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

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

func TestTokenRights_TwoRolesOfOneName(t *testing.T) {
	_, err := tokenRights(&v1alpha1.TokenConfig{Permissions: []v1alpha1.PermissionsRequest{{Name: "a"}, {Name: "a", Namespace: "b"}}}, "h")
	if err != nil {
		t.Errorf("a Role and a ClusterRole: %v", err)
	}
	_, err = tokenRights(&v1alpha1.TokenConfig{Permissions: []v1alpha1.PermissionsRequest{{Name: "a"}, {Name: "a"}}}, "h")
	if err == nil || reasonOf(err, "") != v1alpha1.ReasonConfigurationProblem || !strings.Contains(err.Error(), "two entries make the ClusterRole a") {
		t.Errorf("got %v", err)
	}
}

func TestRenewalOf_IsSpreadOutAndEndsAt80Percent(t *testing.T) {
	created := time.Now()
	seen := map[time.Duration]bool{}
	for i := range 200 {
		after := renewalOf(types.UID(strings.Repeat("x", i)), created, created.Add(100*time.Hour)).Sub(created)
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
	want := "oidc-login get-token --grant-type=auto --oidc-issuer-url=https://i --oidc-client-id=c --oidc-extra-scope=x --oidc-extra-scope=y --oidc-pkce-method=auto"
	if got := strings.Join(exec.Args, " "); got != want || exec.Command != "kubectl" || exec.APIVersion != "client.authentication.k8s.io/v1beta1" {
		t.Errorf("got %s %s of %s", exec.Command, got, exec.APIVersion)
	}
	if config.CurrentContext != "teams--blue--corp" || config.Clusters["teams--blue"].Server != "https://a:1" {
		t.Errorf("got %+v", config)
	}
}

func TestTrusted_TheFirstKeepsAnIssuer(t *testing.T) {
	request := func(uid types.UID, age time.Duration, prefix *string) v1alpha1.AccessRequest {
		ar := v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{UID: uid, CreationTimestamp: metav1.NewTime(time.Now().Add(-age))}}
		ar.Spec.OIDC = &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{Name: "corp", Issuer: "https://i", UsernamePrefix: prefix}}
		return ar
	}
	first, same, other := request("1", time.Hour, nil), request("2", time.Minute, new("corp:")), request("3", time.Second, new(""))
	if providers, err := trusted([]v1alpha1.AccessRequest{other, first}, &same); len(providers) != 1 || err != nil {
		t.Errorf("the same again: %d, %v", len(providers), err)
	}
	providers, err := trusted([]v1alpha1.AccessRequest{first}, &other)
	if r := (reasoned{}); len(providers) != 1 || *providers[0].UsernamePrefix != "corp:" || !errors.As(err, &r) || r.reason != reasonOIDCConflict {
		t.Errorf("another prefix: %+v, %v", providers, err)
	}
	first.Status.Phase = v1alpha1.REQUEST_DENIED
	if providers, err := trusted([]v1alpha1.AccessRequest{first}, &other); len(providers) != 1 || err != nil {
		t.Errorf("after the first is denied: %+v, %v", providers, err)
	}
}

func TestOptions_SayWhatIsWrong(t *testing.T) {
	for want, o := range map[string]Options{
		`--provider-name: ""`:  {Environment: "e", Namespace: "n", verbosity: "info"},
		`--environment: "A.B"`: {ProviderName: "p", Environment: "A.B", Namespace: "n", verbosity: "Debug"},
		`--verbosity: "loud" is none of DEBUG, INFO and ERROR`: {ProviderName: "p", Environment: "e", Namespace: "n", verbosity: "loud"},
		`--kubeconfig: stat /none`:                             {ProviderName: "p", Environment: "e", Namespace: "n", verbosity: "ERROR", kubeconfig: "/none"},
	} {
		if err := o.complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
