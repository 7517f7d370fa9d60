// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// concerns reports whether a change affects a user, whatever the request.
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

func TestHolders_ChangeAffectsOnlyItsSubjects(t *testing.T) {
	ann, bob, eve := someone("ann"), someone("bob", "team"), someone("eve", "others")
	h := NewHolders()
	for _, step := range []struct {
		what       string
		concerned  []Holder
		want       []user.Info
		namespaces []string
	}{
		{"a role that no one holds", h.OfRole("", "viewer"), nil, nil},
		{"a new binding", h.SetClusterRoleBinding(bind("b", "viewer", userSubject("ann"), groupSubject("team"))), []user.Info{ann, bob}, nil},
		{"its role", h.OfRole("", "viewer"), []user.Info{ann, bob}, nil},
		{"a role of its name in a namespace", h.OfRole("dev", "viewer"), nil, []string{"dev"}},
		{"another subject in it", h.SetClusterRoleBinding(bind("b", "viewer", userSubject("eve"))), []user.Info{ann, bob, eve}, nil},
		{"the role then", h.OfRole("", "viewer"), []user.Info{eve}, nil},
		{"another role, made anew under its name", h.SetClusterRoleBinding(bind("b", "editor", userSubject("ann"))), []user.Info{ann, eve}, nil},
		{"the role that was bound", h.OfRole("", "viewer"), nil, nil},
		{"the role that is bound", h.OfRole("", "editor"), []user.Info{ann}, nil},
		{"a binding of its name in a namespace", h.SetRoleBinding(bindIn("dev", "b", "ClusterRole", "editor", groupSubject("others"))), nil, []string{"dev"}},
		{"a role that two bind", h.OfRole("", "editor"), []user.Info{ann}, []string{"dev"}},
		{"one more there", h.SetRoleBinding(bindIn("dev", "b2", "ClusterRole", "editor")), nil, []string{"dev"}},
		{"one elsewhere", h.SetRoleBinding(bindIn("qa", "b", "ClusterRole", "editor")), nil, []string{"qa"}},
		{"the role of them all", h.OfRole("", "editor"), []user.Info{ann}, []string{"dev", "qa"}},
		{"the binding that is gone", h.DeleteBinding("", "b"), []user.Info{ann}, nil},
		{"the first in the namespace, which is gone too", h.DeleteBinding("dev", "b"), nil, []string{"dev"}},
		{"the role of the others", h.OfRole("", "editor"), nil, []string{"dev", "qa"}},
		{"the second, for another role", h.SetRoleBinding(bindIn("dev", "b2", "ClusterRole", "viewer")), nil, []string{"dev"}},
		{"the role of the one elsewhere", h.OfRole("", "editor"), nil, []string{"qa"}},
		{"that one, gone", h.DeleteBinding("qa", "b"), nil, []string{"qa"}},
		{"the role that no one binds", h.OfRole("", "editor"), nil, nil},
		{"a binding to a Role", h.SetRoleBinding(bindIn("dev", "b2", "Role", "local", userSubject("ann"))), nil, []string{"dev"}},
		{"a ClusterRole of its name", h.OfRole("", "local"), nil, nil},
		{"the ClusterRole from before", h.OfRole("", "viewer"), nil, nil},
		{"a service account of no namespace", h.SetClusterRoleBinding(bind("d", "viewer", serviceAccount("", "robot"))), nil, nil},
	} {
		for _, who := range []user.Info{ann, bob, eve} {
			if got, want := concerns(h, step.concerned, who), slices.Contains(step.want, who); got != want {
				t.Errorf("%s: concerns %s: %t, want %t", step.what, who.GetName(), got, want)
			}
		}
		for _, namespace := range []string{"dev", "qa"} {
			if got, want := slices.Contains(step.concerned, h.Namespace(namespace)), slices.Contains(step.namespaces, namespace); got != want {
				t.Errorf("%s: concerns the namespace %s: %t, want %t", step.what, namespace, got, want)
			}
		}
	}
	h.DeleteBinding("dev", "b2")
	if len(h.bindings)+len(h.bound)+len(h.local)+len(h.namespaces) > 0 {
		t.Errorf("remembers %+v after everything is gone", h)
	}
}

// A tenant may bind any number of subjects in its namespace. The server waits while a change is processed.
func TestHolders_NamespacedBindingsHaveConstantCost(t *testing.T) {
	h := NewHolders()
	subjects := make([]rbacv1.Subject, 20000)
	for i := range subjects {
		subjects[i] = userSubject(fmt.Sprint("user-", i))
	}
	for i := range 50 {
		if n := len(h.SetRoleBinding(bindIn("dev", fmt.Sprint("b", i), "Role", "local", subjects...))); n != 1 {
			t.Fatalf("a binding concerns %d, want its namespace", n)
		}
		h.SetRoleBinding(bindIn("dev", fmt.Sprint("c", i), "ClusterRole", "viewer", subjects...))
	}
	for _, namespace := range []string{"dev", ""} {
		if n := len(h.OfRole(namespace, map[string]string{"dev": "local", "": "viewer"}[namespace])); n != 1 {
			t.Errorf("a role in %q concerns %d, want the namespace", namespace, n)
		}
	}
}

// A user is never a group, even if they have the same name.
func TestHolders_UsersAreNotGroups(t *testing.T) {
	h := NewHolders()
	if concerns(h, h.SetClusterRoleBinding(bind("b", "viewer", groupSubject("ann"))), someone("ann")) {
		t.Error("a binding of the group ann concerns the user ann")
	}
	if concerns(h, h.SetClusterRoleBinding(bind("b2", "viewer", userSubject("team"))), someone("bob", "team")) {
		t.Error("a binding of the user team concerns who is in the group team")
	}
}
