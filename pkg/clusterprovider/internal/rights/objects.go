// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/remote"
)

// Scheme has the kinds that access to a cluster is made of.
var Scheme = hub.NewScheme(corev1.AddToScheme, rbacv1.AddToScheme)

// Kinds are the kinds that access to a cluster is made of, in the order in which it is taken back: first what gives rights,
// then the rights, then who has them.
var Kinds = []schema.GroupVersionKind{
	rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
	rbacv1.SchemeGroupVersion.WithKind(RoleKind), rbacv1.SchemeGroupVersion.WithKind(ClusterRoleKind),
	corev1.SchemeGroupVersion.WithKind(rbacv1.ServiceAccountKind),
}

// Role is one that a request only refers to.
type Role struct{ Kind, Name string }

// ReferredTo are the roles that are only referred to, each once.
func (r *Rights) ReferredTo() (roles []Role) {
	seen := sets.New[string]()
	for _, object := range r.Objects {
		seen.Insert(remote.IDOf(object).String())
	}
	for _, object := range r.Objects {
		ref := remote.RoleRefOf(object)
		name := RoleName(ref.Kind, object.GetNamespace(), ref.Name)
		if ref.Name != "" && !seen.Has(name) {
			seen.Insert(name)
			roles = append(roles, Role{ref.Kind, name})
		}
	}
	return roles
}

// RoleName names a role among those of a cluster.
func RoleName(kind, namespace, name string) string {
	if kind == RoleKind {
		name = namespace + "/" + name
	}
	return kind + " " + name
}
