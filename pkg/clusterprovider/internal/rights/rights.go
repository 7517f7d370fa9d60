// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights has the objects that grant the access of an AccessRequest in a cluster.
package rights

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// Names of subjects and roles.
const (
	RoleKind        = "Role"
	ClusterRoleKind = "ClusterRole"
	// Verbatim is the prefix of the name of a subject that gets no prefix.
	Verbatim = "::"
)

// GivenName matches the name of a role or binding to which the request assigns none, with the hash in it.
var GivenName = regexp.MustCompile(`^openmcp:(?:permission:|roleref:)?([a-z2-7]{8})(?::\d+){1,2}$`)

// Rights are the objects in a cluster that grant access, and the namespaces that they need.
type Rights struct {
	Namespaces []string
	Objects    []client.Object
}

// Of returns the rights that a request specifies. The hash is the part of their names that identifies the request.
func Of(ar *v1alpha1.AccessRequest, hash string) (*Rights, error) {
	if ar.Spec.OIDC != nil {
		return oidcRights(ar.Spec.OIDC, hash)
	}
	return tokenRights(ar.Spec.Token, hash)
}

// tokenRights returns the rights of a ServiceAccount.
func tokenRights(config *v1alpha1.TokenConfig, hash string) (*Rights, error) {
	account := ServiceAccount(hash)
	subjects := SubjectsOf(account)
	r := &Rights{Namespaces: []string{v1alpha1.TokenMinterNamespace}, Objects: []client.Object{account}}
	for i, permission := range config.Permissions {
		name := cmp.Or(permission.Name, fmt.Sprintf("openmcp:permission:%s:%d", hash, i))
		role := r.addRole(name, permission)
		r.addBinding(name, role, subjects)
	}
	for i, ref := range config.RoleRefs {
		r.addBinding(fmt.Sprintf("openmcp:roleref:%s:%d", hash, i), ref, subjects)
	}
	return r, r.distinct("spec.token.permissions")
}

// oidcRights returns the rights of users and groups of an OIDC provider.
func oidcRights(config *v1alpha1.OIDCConfig, hash string) (*Rights, error) {
	r := &Rights{}
	for i, role := range config.Roles {
		r.addRole(cmp.Or(role.Name, fmt.Sprintf("openmcp:%s:%d", hash, i)), role)
	}
	for i, bindings := range config.RoleBindings {
		subjects := Prefixed(bindings.Subjects, &config.OIDCProviderConfig)
		for j, ref := range bindings.RoleRefs {
			r.addBinding(fmt.Sprintf("openmcp:%s:%d:%d", hash, i, j), ref, subjects)
		}
	}
	return r, r.distinct("spec.oidc.roles")
}

// distinct returns an error if a role is requested twice: the later would replace the earlier.
func (r *Rights) distinct(field string) error {
	seen := sets.New[apply.ID]()
	for _, object := range r.Objects {
		id := apply.IDOf(object)
		if seen.Has(id) {
			return hub.Because(v1alpha1.ReasonConfigurationProblem, fmt.Errorf("%s: two entries specify the %s: rename one of them",
				field, id))

		}
		seen.Insert(id)
	}
	return nil
}

func (r *Rights) addRole(name string, permission v1alpha1.PermissionsRequest) v1alpha1.RoleRef {
	if permission.Namespace == "" {
		r.Objects = append(r.Objects, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: permission.Rules})
		return v1alpha1.RoleRef{Kind: ClusterRoleKind, Name: name}
	}
	if !permission.DisableAutomaticNamespaceCreation {
		r.Namespaces = append(r.Namespaces, permission.Namespace)
	}
	meta := metav1.ObjectMeta{Name: name, Namespace: permission.Namespace}
	r.Objects = append(r.Objects, &rbacv1.Role{ObjectMeta: meta, Rules: permission.Rules})
	return v1alpha1.RoleRef{Kind: RoleKind, Name: name, Namespace: permission.Namespace}
}

// addBinding binds a Role in its namespace, and a ClusterRole in the whole cluster.
func (r *Rights) addBinding(name string, to v1alpha1.RoleRef, subjects []rbacv1.Subject) {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: to.Kind, Name: to.Name}
	meta := metav1.ObjectMeta{Name: name}
	if to.Kind == RoleKind {
		meta.Namespace = to.Namespace
		r.Objects = append(r.Objects, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
		return
	}
	r.Objects = append(r.Objects, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
}

// Prefixed returns subjects with the names that the cluster uses.
func Prefixed(subjects []rbacv1.Subject, provider *v1alpha1.OIDCProviderConfig) []rbacv1.Subject {
	prefixes := map[string]string{rbacv1.UserKind: provider.GetUsernamePrefix(), rbacv1.GroupKind: provider.GetGroupsPrefix()}
	var result []rbacv1.Subject
	for _, subject := range subjects {
		if prefix, ok := prefixes[subject.Kind]; ok {
			subject.APIGroup = rbacv1.GroupName
			if name, ok := strings.CutPrefix(subject.Name, Verbatim); ok {
				subject.Name = name
			} else {
				subject.Name = prefix + subject.Name
			}
		}
		result = append(result, subject)
	}
	return result
}

// ServiceAccount returns a ServiceAccount for tokens.
func ServiceAccount(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.TokenMinterNamespace, Name: name}}
}

// SubjectsOf returns the subjects of a binding to a ServiceAccount.
func SubjectsOf(account *corev1.ServiceAccount) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
}
