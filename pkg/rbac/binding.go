// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// subject is one property that identifies the client of a request: the name of its user or the name of one of the user's groups.
type subject struct {
	group bool
	name  string
}

func compareSubjects(a, b subject) int {
	if a.group != b.group {
		if b.group {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.name, b.name)
}

// binding is the part of a ClusterRoleBinding that is stored: a role and its subjects, ascending and distinct. The zero value has no subjects.
type binding struct {
	role     string
	subjects []subject
}

// subjectOf returns the subject that the authorizer compares with a request, for a binding in a namespace or without one. ok is false if the
// authorizer never grants it anything: an unknown kind, or a service account without a namespace (upstream's appliesToUser).
func subjectOf(s rbacv1.Subject, namespace string) (who subject, ok bool) {
	switch s.Kind {
	case rbacv1.UserKind:
		return subject{name: s.Name}, true
	case rbacv1.GroupKind:
		// This group has all rights before any rule is evaluated: to grant it more changes nothing.
		return subject{group: true, name: s.Name}, s.Name != user.SystemPrivilegedGroup
	case rbacv1.ServiceAccountKind:
		namespace = cmp.Or(s.Namespace, namespace)
		return subject{name: serviceaccount.MakeUsername(namespace, s.Name)}, namespace != ""
	}
	return subject{}, false
}

// bindingOf leaves out what the authorizer never grants anything for: a roleRef to a kind other than ClusterRole (upstream's GetRoleReferenceRules
// finds no Role without a namespace), and invalid subjects. It also leaves out subjects for which counts returns false.
func bindingOf(object *rbacv1.ClusterRoleBinding, counts func(subject) bool) binding {
	if object.RoleRef.Kind != "ClusterRole" {
		return binding{}
	}
	var subjects []subject
	for _, s := range object.Subjects {
		if who, ok := subjectOf(s, ""); ok && counts(who) {
			subjects = append(subjects, who)
		}
	}
	if len(subjects) == 0 {
		return binding{}
	}
	slices.SortFunc(subjects, compareSubjects)
	return binding{role: object.RoleRef.Name, subjects: slices.Compact(subjects)}
}
