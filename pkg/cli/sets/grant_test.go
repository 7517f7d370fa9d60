// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/setroles"
)

const (
	rolesPath       = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	roleBindingPath = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
)

func newSetBy(name, uid string, selects v1beta1.ManagedClusterSelector) *v1beta1.ManagedClusterSet {
	return &v1beta1.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}, Spec: v1beta1.ManagedClusterSetSpec{ClusterSelector: selects}}
}

// grants returns the permissions of the rules, one for each verb, as VERB RESOURCE NAME.
func grants(rules []rbacv1.PolicyRule) (all []string) {
	for _, r := range rules {
		for _, verb := range r.Verbs {
			all = append(all, strings.TrimSpace(strings.Join(r.APIGroups, ",")[:7]+" "+verb+" "+strings.Join(r.Resources, ",")+" "+strings.Join(r.ResourceNames, ",")))
		}
	}
	slices.Sort(all)
	return all
}

func TestGrant_RulesOfRole(t *testing.T) {
	view := []string{"cluster get managedclustersets payments", "cluster get managedclustersets/clusters payments"}
	use := append(slices.Clone(view), "cluster create managedclustersets/bind payments")
	deploy := append(slices.Clone(use), "cluster create managedclustersets/manifestworks payments")
	change := append(slices.Clone(use), "cluster update managedclustersets/clusters payments", "cluster patch managedclustersets/clusters payments",
		"cluster delete managedclustersets/clusters payments")
	legacy := v1beta1.ManagedClusterSelector{}
	exclusive := func(key string) v1beta1.ManagedClusterSelector {
		return v1beta1.ManagedClusterSelector{SelectorType: v1beta1.ExclusiveLabel, ExclusiveLabel: &v1beta1.ManagedClusterLabel{Key: key, Value: "eu"}}
	}
	for name, test := range map[string]struct {
		role    string
		selects v1beta1.ManagedClusterSelector
		want    []string
	}{
		"viewer":                       {setroles.Viewer, legacy, view},
		"user":                         {setroles.User, legacy, use},
		"deployer":                     {setroles.Deployer, legacy, deploy},
		"deployer of an exclusive set": {setroles.Deployer, exclusive("info.open-cluster-management.io/region"), deploy},
		"admin": {setroles.Admin, legacy, append(slices.Clone(change), "cluster create managedclusters",
			"cluster create managedclusters/label cluster.open-cluster-management.io/clusterset:payments")},
		"admin of an exclusive set": {setroles.Admin, exclusive("info.open-cluster-management.io/region"),
			append(slices.Clone(change), "cluster create managedclusters/label info.open-cluster-management.io/region:eu")},
		"admin of a set that a free label selects": {setroles.Admin, exclusive("region"), change},
		// The label may add clusters to other sets, too.
		"admin of a set that a selector selects": {setroles.Admin, v1beta1.ManagedClusterSelector{SelectorType: v1beta1.LabelSelector,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"info.open-cluster-management.io/region": "eu"}}}, change},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := setroles.Rules(newSetBy("payments", "1", test.selects), test.role)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(test.want)
			if got := grants(rules); !slices.Equal(got, test.want) {
				t.Errorf("it grants %q, not %q", got, test.want)
			}
		})
	}
}

func TestGrantAndRevoke(t *testing.T) {
	s := clitest.NewServer(t, newSetBy("payments", "1", v1beta1.ManagedClusterSelector{}))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	const name = "/clusterhub:set:payments:user"
	for _, step := range []struct{ args, says, subjects string }{
		{"grant --user dana", "is granted to user dana", "User dana"},
		{"grant --user dana", "is already granted to user dana", "User dana"},
		{"grant --user dana,erik --group auditors --serviceaccount team-a:deployer", "is granted to group auditors, serviceaccount team-a:deployer, user dana, user erik",
			"User dana, Group auditors, ServiceAccount deployer, User erik"},
		{"revoke --user erik --user nobody-has-this-name", "is revoked from user erik, user nobody-has-this-name", "User dana, Group auditors, ServiceAccount deployer"},
		{"revoke --user erik", "is already revoked from user erik", "User dana, Group auditors, ServiceAccount deployer"},
		{"revoke --user dana --group auditors --serviceaccount team-a:deployer", "is revoked from group auditors, serviceaccount team-a:deployer, user dana", ""},
		{"revoke --user dana", "is already revoked from user dana", ""},
	} {
		args := strings.Fields(step.args)
		if got := clitest.MustRun(t, config, append([]string{args[0], "payments", "--role", "user"}, args[1:]...)...); got != "Role user of clusterset payments "+step.says+"\n" {
			t.Errorf("%s says %q", step.args, got)
		}
		if step.subjects == "" {
			if s.Get(roleBindingPath+name) != nil {
				t.Error("a binding that is of no use is left")
			}
			continue
		}
		role, binding := clitest.Object[rbacv1.ClusterRole](t, s, rolesPath+name), clitest.Object[rbacv1.ClusterRoleBinding](t, s, roleBindingPath+name)
		var subjects []string
		for _, s := range binding.Subjects {
			subjects = append(subjects, s.Kind+" "+s.Name)
		}
		if got := strings.Join(subjects, ", "); got != step.subjects || binding.RoleRef.Name != role.Name {
			t.Errorf("after %s it is bound to %s", step.args, got)
		}
		for _, o := range []metav1.ObjectMeta{role.ObjectMeta, binding.ObjectMeta} {
			if len(o.OwnerReferences) != 1 || o.OwnerReferences[0].UID != "1" || o.OwnerReferences[0].Kind != "ManagedClusterSet" {
				t.Errorf("it does not go with its set: %v", o.OwnerReferences)
			}
		}
	}
}

// TestGrant_NothingToUsersOfEarlierSet verifies that users of a deleted set of the same name get no permissions on the new set, even if the
// garbage collector is late.
func TestGrant_NothingToUsersOfEarlierSet(t *testing.T) {
	s := clitest.NewServer(t, newSetBy("payments", "1", v1beta1.ManagedClusterSelector{}))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	clitest.MustRun(t, config, "grant", "payments", "--role", "admin", "--user", "mallory")
	s.Put(newSetBy("payments", "2", v1beta1.ManagedClusterSelector{}))
	clitest.MustRun(t, config, "grant", "payments", "--role", "admin", "--user", "dana")
	binding := clitest.Object[rbacv1.ClusterRoleBinding](t, s, roleBindingPath+"/clusterhub:set:payments:admin")
	if len(binding.Subjects) != 1 || binding.Subjects[0].Name != "dana" || binding.OwnerReferences[0].UID != "2" {
		t.Errorf("it is bound to %v by %v", binding.Subjects, binding.OwnerReferences)
	}
	if role := clitest.Object[rbacv1.ClusterRole](t, s, rolesPath+"/clusterhub:set:payments:admin"); role.OwnerReferences[0].UID != "2" {
		t.Errorf("the role is of %v", role.OwnerReferences)
	}
}

// TestGrant_RepairsRole verifies that grant corrects the role: the label that the set selects by may have changed, and users may have added rules.
func TestGrant_RepairsRole(t *testing.T) {
	s := clitest.NewServer(t, newSetBy("payments", "1", v1beta1.ManagedClusterSelector{}))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	const path = rolesPath + "/clusterhub:set:payments:viewer"
	clitest.MustRun(t, config, "grant", "payments", "--role", "viewer", "--user", "dana")
	role := clitest.Object[rbacv1.ClusterRole](t, s, path)
	right := grants(role.Rules)
	role.Rules[0].Verbs = []string{"*"}
	s.Put(role)
	if got := clitest.MustRun(t, config, "grant", "payments", "--role", "viewer", "--user", "dana"); strings.Contains(got, "already") {
		t.Errorf("it says %q", got)
	}
	if got := grants(clitest.Object[rbacv1.ClusterRole](t, s, path).Rules); !slices.Equal(got, right) {
		t.Errorf("the role grants %q", got)
	}
}

func TestGrant_DoesNotChangeOtherRoles(t *testing.T) {
	s := clitest.NewServer(t, newSetBy("payments", "1", v1beta1.ManagedClusterSelector{}),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "clusterhub:set:payments:viewer", UID: "theirs"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "clusterhub:set:payments:viewer", UID: "theirs"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "dana"}}})
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	for _, command := range []string{"grant", "revoke"} {
		_, _, err := clitest.Run(t, config, command, "payments", "--role", "viewer", "--user", "dana")
		if err == nil {
			t.Fatalf("%s goes on", command)
		}
		clitest.Says(t, err.Error(), "clusterhub:set:payments:viewer exists without the label")
	}
	s.WantUnchanged()
}

func TestGrant_InvalidArguments(t *testing.T) {
	s := clitest.NewServer(t, newSetBy("payments", "1", v1beta1.ManagedClusterSelector{}))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	for args, want := range map[string]string{
		"payments --user dana":                                 `--role must be admin, deployer, user, viewer, not ""`,
		"payments --role owner --user dana":                    `--role must be admin, deployer, user, viewer, not "owner"`,
		"payments --role admin":                                "--user, --group or --serviceaccount must name a subject",
		"payments --role admin --user=":                        "--user, --group or --serviceaccount must name a subject",
		"payments --role admin --user=a,,b":                    "--user must be a name, not empty",
		"payments --role admin --serviceaccount deployer":      `--serviceaccount must be NAMESPACE:NAME, not "deployer"`,
		"payments --role admin --serviceaccount team-a:":       `--serviceaccount must be NAMESPACE:NAME, not "team-a:"`,
		"payments --role admin --serviceaccount Team:deployer": `--serviceaccount must be NAMESPACE:NAME, not "Team:deployer"`,
		"other --role admin --user dana":                       `"other" not found`,
		"--role admin --user dana":                             "a cluster set",
	} {
		stdout, _, err := clitest.Run(t, config, append([]string{"grant"}, strings.Fields(args)...)...)
		if err == nil || stdout != "" {
			t.Errorf("%s goes on: %q", args, stdout)
			continue
		}
		clitest.Says(t, err.Error(), want)
	}
	s.WantUnchanged()
}

// TestGrant_Concurrently verifies that two users can grant at the same time.
func TestGrant_Concurrently(t *testing.T) {
	s := clitest.NewServer(t, newSetBy("payments", "1", v1beta1.ManagedClusterSelector{}))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	clitest.MustRun(t, config, "grant", "payments", "--role", "user", "--user", "dana")
	const path = roleBindingPath + "/clusterhub:set:payments:user"
	meanwhile := true
	s.On["PUT "+path] = func(w http.ResponseWriter, _ []byte) bool {
		if !meanwhile {
			return false
		}
		meanwhile = false
		binding := clitest.Object[rbacv1.ClusterRoleBinding](t, s, path)
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "erik"})
		s.Put(binding)
		conflict := apierrors.NewConflict(rbacv1.Resource("clusterrolebindings"), binding.Name, nil)
		clitest.WriteJSON(w, http.StatusConflict, conflict.ErrStatus)
		return true
	}
	clitest.MustRun(t, config, "grant", "payments", "--role", "user", "--user", "fay")
	if got := len(clitest.Object[rbacv1.ClusterRoleBinding](t, s, path).Subjects); got != 3 {
		t.Errorf("%d users have the role, not 3", got)
	}
}
