// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// Scheme has the kinds of the objects that grant access to a cluster.
var Scheme = hub.NewScheme(corev1.AddToScheme, rbacv1.AddToScheme)

// Kinds are the kinds of the objects that grant access to a cluster, in the order of deletion: first bindings, then roles, then subjects.
var Kinds = []schema.GroupVersionKind{
	rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
	rbacv1.SchemeGroupVersion.WithKind(RoleKind), rbacv1.SchemeGroupVersion.WithKind(ClusterRoleKind),
	corev1.SchemeGroupVersion.WithKind(rbacv1.ServiceAccountKind),
}

// Role is a role that a request only refers to.
type Role struct{ Kind, Name string }

// ReferredTo returns the roles that are only referred to, without duplicates.
func (r *Rights) ReferredTo() (roles []Role) {
	seen := sets.New[string]()
	for _, object := range r.Objects {
		seen.Insert(apply.IDOf(object).String())
	}
	for _, object := range r.Objects {
		ref := apply.RoleRefOf(object)
		name := RoleName(ref.Kind, object.GetNamespace(), ref.Name)
		if ref.Name != "" && !seen.Has(name) {
			seen.Insert(name)
			roles = append(roles, Role{ref.Kind, name})
		}
	}
	return roles
}

// RoleName returns the name of a role within a cluster.
func RoleName(kind, namespace, name string) string {
	if kind == RoleKind {
		name = namespace + "/" + name
	}
	return kind + " " + name
}
