// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

func TestOIDCRights_PrefixUsersAndGroups(t *testing.T) {
	config := &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{
		Name: "corp", GroupsPrefix: new("g:"), RoleBindings: []v1alpha1.RoleBindings{{
			Subjects: []rbacv1.Subject{
				{Kind: "User", Name: "ann"}, {Kind: "User", Name: "::bob"}, {Kind: "Group", Name: "devs"},
				{Kind: "Group", Name: "::system:masters"}, {Kind: "ServiceAccount", Name: "robot", Namespace: "default"},
			},
			RoleRefs: []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: "view"}, {Kind: "Role", Name: "my", Namespace: "web"}},
		}},
	}, Roles: []v1alpha1.PermissionsRequest{{Name: "my", Namespace: "web"}, {}}}
	wanted, err := oidcRights(config, "h")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, object := range wanted.Objects {
		got = append(got, apply.IDOf(object).String())
	}
	want := []string{"Role web/my", "ClusterRole openmcp:h:1", "ClusterRoleBinding openmcp:h:0:0", "RoleBinding web/openmcp:h:0:1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var subjects []string
	for _, subject := range wanted.Objects[2].(*rbacv1.ClusterRoleBinding).Subjects {
		subjects = append(subjects, subject.Name)
	}
	if want := []string{"corp:ann", "bob", "g:devs", "system:masters", "robot"}; !slices.Equal(subjects, want) {
		t.Errorf("got %v, want %v", subjects, want)
	}
}

func TestTokenRights_CreatesNamespacesByDefault(t *testing.T) {
	wanted, err := tokenRights(&v1alpha1.TokenConfig{Permissions: []v1alpha1.PermissionsRequest{
		{Namespace: "made"}, {Namespace: "not-made", DisableAutomaticNamespaceCreation: true}, {},
	}}, "h")
	if want := []string{"accessrequests", "made"}; err != nil || !slices.Equal(wanted.Namespaces, want) {
		t.Errorf("makes %v, %v", wanted.Namespaces, err)
	}
}

func TestTokenRights_TwoRolesOfSameName(t *testing.T) {
	of := func(permissions ...v1alpha1.PermissionsRequest) error {
		_, err := tokenRights(&v1alpha1.TokenConfig{Permissions: permissions}, "h")
		return err
	}
	if err := of(v1alpha1.PermissionsRequest{Name: "a"}, v1alpha1.PermissionsRequest{Name: "a", Namespace: "b"}); err != nil {
		t.Errorf("a Role and a ClusterRole: %v", err)
	}
	err := of(v1alpha1.PermissionsRequest{Name: "a"}, v1alpha1.PermissionsRequest{Name: "a"})
	if hub.ReasonOf(err, "") != v1alpha1.ReasonConfigurationProblem || !strings.Contains(err.Error(), "two entries specify the ClusterRole a") {
		t.Errorf("got %v", err)
	}
}

// FuzzSubjects: a subject gets a role under the name that its issuer assigns, or under the exact name after "::".
func FuzzSubjects(f *testing.F) {
	for _, name := range []string{"ann", "::bob", "::", ":bob", "::::bob", "system:masters", "", "::system:masters"} {
		f.Add(name, "corp:", "g:")
	}
	f.Fuzz(func(t *testing.T, name, userPrefix, groupsPrefix string) {
		provider := &v1alpha1.OIDCProviderConfig{Issuer: "https://a", UsernamePrefix: &userPrefix, GroupsPrefix: &groupsPrefix}
		subjects := []rbacv1.Subject{
			{Kind: rbacv1.UserKind, Name: name}, {Kind: rbacv1.GroupKind, Name: name},
			{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name},
		}
		before := slices.Clone(subjects)
		given := Prefixed(subjects, provider)
		if !slices.Equal(subjects, before) || len(given) != len(subjects) {
			t.Fatalf("%v became %v, and %v", before, subjects, given)
		}
		want := []string{userPrefix + name, groupsPrefix + name, name}
		if bare, ok := strings.CutPrefix(name, "::"); ok {
			want[0], want[1] = bare, bare
		}
		for i := range given {
			if given[i].Name != want[i] || given[i].Kind != subjects[i].Kind || given[i].Namespace != subjects[i].Namespace {
				t.Errorf("%+v with %q and %q became %+v, want the name %q", subjects[i], userPrefix, groupsPrefix, given[i], want[i])
			}
		}
	})
}
