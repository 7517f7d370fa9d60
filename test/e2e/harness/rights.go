// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
)

// LabelRight returns the right to set and remove labels. The names have the form key:value.
func LabelRight(names ...string) rbacv1.PolicyRule {
	return Rule("create", "managedclusters/label", names...)
}

// Rule returns a rule for resources of the clusters' API group.
func Rule(verbs, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		Verbs: strings.Split(verbs, ","), APIGroups: []string{ClusterGroup}, Resources: []string{resource}, ResourceNames: names,
	}
}

// RuleIn returns a rule for a different group than that of the clusters.
func RuleIn(group, verbs, resource string, names ...string) rbacv1.PolicyRule {
	r := Rule(verbs, resource, names...)
	r.APIGroups = []string{group}
	return r
}

// User creates a user of the shared hub with exactly these rights.
func User(t *testing.T, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	name := Unique("user")
	Grant(t, Hub(t), name, name, rules...)
	return name
}

// Grant grants rights to a user under a name, and waits until the front observes them.
func Grant(t *testing.T, h *localhub.Instance, name, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	client := Kube(t, h.AdminConfig())
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	Must(client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}))(t)
	Must(client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = client.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = client.RbacV1().ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{})
	})
	for _, r := range rules {
		AwaitRule(t, client, user, r)
	}
}

// AwaitRule waits until the front's authorizer allows a user what a rule grants.
func AwaitRule(t *testing.T, client kubernetes.Interface, user string, r rbacv1.PolicyRule) {
	t.Helper()
	resource, subresource, _ := strings.Cut(r.Resources[0], "/")
	attributes := &authorizationv1.ResourceAttributes{Verb: r.Verbs[0], Group: r.APIGroups[0], Resource: resource, Subresource: subresource}
	if len(r.ResourceNames) > 0 {
		attributes.Name = r.ResourceNames[0]
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: attributes}}
	Eventually(t, "the right of "+user, func(ctx context.Context) (bool, error) {
		answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	})
}

// WantForbidden fails the test unless an error is a 403 whose message contains all parts.
func WantForbidden(t *testing.T, err error, parts ...string) {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want a 403", err)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the 403 does not say %q: %v", part, err)
		}
	}
}
