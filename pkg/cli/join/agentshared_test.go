// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
)

// TestAttack_ClusterAgentInTeamNamespace: a team tries to become admins of the cluster by a token of the agent, by a Secret or by a pod. An
// agent of the whole cluster is not installed in a namespace where users other than admins of the cluster have any of these permissions.
func TestAttack_ClusterAgentInTeamNamespace(t *testing.T) {
	w := newTeams(t, "theirs", "seen", "minted", "empty")
	admin := w.file(w.admin)
	w.user("ted", "edit", "theirs")
	w.user("vic", "view", "seen")
	for name, rule := range map[string]rbacv1.PolicyRule{
		"mint": {APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}},
		"read": {APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
	} {
		w.make(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "minted", Name: name}, Rules: []rbacv1.PolicyRule{rule}},
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "minted", Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "minters"}}})
	}
	w.refused(admin, "install", []string{"--cluster-scoped", "--namespace", "theirs"}, "others could act as an agent of the whole cluster in namespace theirs: "+
		"RoleBinding ted lets serviceaccount people:ted ", "(nothing was created)", "Omit --namespace and --cluster-scoped")
	w.refused(admin, "install", []string{"--cluster-scoped", "--namespace", "minted"}, "RoleBinding mint lets group minters create serviceaccounts/token; "+
		"RoleBinding read lets group minters get secrets")

	// An admin of a team who installs with --namespace gets an agent of that namespace and no more.
	_, amys := w.user("amy", "admin", "theirs")
	stdout, _ := w.must(amys, "install", "--namespace", "theirs")
	clitest.Says(t, stdout, "with the rights of admin in these namespaces: theirs.")
	w.must(amys, "uninstall", "--namespace", "theirs")

	// A user who reads no Secrets is allowed, and so are admins of the cluster, by any kind of binding.
	w.make(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "roots"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "roots"}}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "seen", Name: "roots"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "roots"}}})
	before := operatortest.Objects(t, w.admin)
	for _, namespace := range []string{"seen", "empty"} {
		for range 2 { // an upgrade finds the agent's own bindings
			stdout, _ = w.must(admin, "install", "--cluster-scoped", "--namespace", namespace)
			clitest.Says(t, stdout, "with the rights of admin in all namespaces.")
		}
		w.must(admin, "uninstall", "--namespace", namespace)
	}
	operatortest.NothingSince(t, w.admin, before)
}

// TestAgentInstall_ChecksForOthersFirst verifies that a user who may not read the bindings and roles of the namespace gets an error, and that no agent
// is installed.
func TestAgentInstall_ChecksForOthersFirst(t *testing.T) {
	const bindings, roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/rolebindings", "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/roles/"
	for want, refuse := range map[string]string{
		"this user may not list rolebindings in the namespace team-a": "GET " + bindings,
		"this user may not get the Role ops":                          "GET " + roles + "ops",
		"RoleBinding ops lets user ops create pods":                   "POST /apis/authorization.k8s.io/v1/subjectaccessreviews",
	} {
		cluster, config, args := newTeam(t)
		cluster.Put(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "ops"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create"}}}})
		cluster.Put(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "ops"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "ops"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "ops"}}})
		cluster.Refuse(refuse, clitest.Forbidden("it", "get"))
		_, _, err := clitest.Run(t, config, append(args, "--cluster-scoped")...)
		if err == nil || !strings.Contains(command.ErrorLine(err), want) {
			t.Errorf("it says %v, want %s", err, want)
		}
		cluster.WantUnchanged()
	}
}
