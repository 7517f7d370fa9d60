// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// concerns says whether a user is among those whom a change concerns.
func concerns(h *Holders, concerned []Holder, who user.Info) bool {
	return slices.ContainsFunc(h.Of(who), func(holder Holder) bool { return slices.Contains(concerned, holder) })
}

func bindIn(namespace, name, kind, role string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   subjects,
	}
}

func TestHolders_AChangeConcernsWhomItIsAboutAndNoOneElse(t *testing.T) {
	ann, bob, eve := someone("ann"), someone("bob", "team"), someone("eve", "others")
	robot := someone("system:serviceaccount:dev:robot", "system:serviceaccounts")
	h := NewHolders()
	for _, step := range []struct {
		what      string
		concerned []Holder
		want      []user.Info
	}{
		{"a role that no one holds", h.OfRole("", "viewer"), nil},
		{"a new binding", h.SetClusterRoleBinding(bind("b", "viewer", userSubject("ann"), groupSubject("team"))), []user.Info{ann, bob}},
		{"its role", h.OfRole("", "viewer"), []user.Info{ann, bob}},
		{"a role of its name in a namespace", h.OfRole("dev", "viewer"), nil},
		{"another subject in it", h.SetClusterRoleBinding(bind("b", "viewer", userSubject("eve"))), []user.Info{ann, bob, eve}},
		{"the role then", h.OfRole("", "viewer"), []user.Info{eve}},
		{"another role, made anew under its name", h.SetClusterRoleBinding(bind("b", "editor", userSubject("ann"))), []user.Info{ann, eve}},
		{"the role that was bound", h.OfRole("", "viewer"), nil},
		{"the role that is bound", h.OfRole("", "editor"), []user.Info{ann}},
		{"a binding of its name in a namespace", h.SetRoleBinding(bindIn("dev", "b", "ClusterRole", "editor", groupSubject("others"))), []user.Info{eve}},
		{"a role that two bind", h.OfRole("", "editor"), []user.Info{ann, eve}},
		{"the binding that is gone", h.DeleteBinding("", "b"), []user.Info{ann}},
		{"the role of the other", h.OfRole("", "editor"), []user.Info{eve}},
		{"the other", h.DeleteBinding("dev", "b"), []user.Info{eve}},
		{"what was never there", h.DeleteBinding("dev", "b"), nil},
		{"a Role", h.SetRoleBinding(bindIn("dev", "c", "Role", "local", serviceAccount("", "robot"))), []user.Info{robot}},
		{"it", h.OfRole("dev", "local"), []user.Info{robot}},
		{"one of its name elsewhere", h.OfRole("qa", "local"), nil},
		{"a ClusterRole of its name", h.OfRole("", "local"), nil},
		{"a service account of no namespace", h.SetClusterRoleBinding(bind("d", "viewer", serviceAccount("", "robot"))), nil},
	} {
		for _, who := range []user.Info{ann, bob, eve, robot} {
			if got, want := concerns(h, step.concerned, who), slices.Contains(step.want, who); got != want {
				t.Errorf("%s: concerns %s: %t, want %t", step.what, who.GetName(), got, want)
			}
		}
	}
	h.DeleteBinding("dev", "c")
	if len(h.bindings) > 0 || len(h.bound) > 0 {
		t.Errorf("remembers %v, %v after everything is gone", h.bindings, h.bound)
	}
}

// A user is no group, whatever the names.
func TestHolders_AUserIsNoGroup(t *testing.T) {
	h := NewHolders()
	if concerns(h, h.SetClusterRoleBinding(bind("b", "viewer", groupSubject("ann"))), someone("ann")) {
		t.Error("a binding of the group ann concerns the user ann")
	}
	if concerns(h, h.SetClusterRoleBinding(bind("b2", "viewer", userSubject("team"))), someone("bob", "team")) {
		t.Error("a binding of the user team concerns who is in the group team")
	}
}
