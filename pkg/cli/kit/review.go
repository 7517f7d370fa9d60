// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IsAllowed reports whether the user has a permission.
func IsAllowed(ctx context.Context, client kubernetes.Interface, right authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
	answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

// MissingRight describes the first of the permissions that the user does not have. It returns "" if the user has all of them.
func MissingRight(ctx context.Context, client kubernetes.Interface, rights []authorizationv1.ResourceAttributes) (string, error) {
	all := authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"}
	if allowed, err := IsAllowed(ctx, client, all); err != nil || allowed {
		return "", err
	}
	for _, right := range rights {
		allowed, err := IsAllowed(ctx, client, right)
		if err != nil {
			return "", err
		}
		if !allowed {
			return DescribeRight(right), nil
		}
	}
	return "", nil
}

// DescribeRight returns a permission in words, such as "create secrets in the namespace n".
func DescribeRight(right authorizationv1.ResourceAttributes) string {
	words := right.Verb + " " + right.Resource + Prefixed("/", right.Subresource) + Prefixed(".", right.Group)
	return words + Prefixed(" in the namespace ", right.Namespace)
}

// IsEscalation reports whether an API server has rejected a grant of permissions that the user does not have.
func IsEscalation(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "attempting to grant RBAC permissions not currently held")
}

// DescribeSubjects returns the names of the subjects in the form of the flags.
func DescribeSubjects(all []rbacv1.Subject) string {
	names := make([]string, len(all))
	for i, s := range all {
		name := s.Name
		if s.Kind == rbacv1.ServiceAccountKind {
			name = s.Namespace + ":" + name
		}
		names[i] = strings.ToLower(s.Kind) + " " + name
	}
	return strings.Join(names, ", ")
}

// DeleteUnchanged deletes the object that was read, and fails if it was replaced or changed since then.
func DeleteUnchanged(ctx context.Context, c client.Client, object client.Object) error {
	uid, version := object.GetUID(), object.GetResourceVersion()
	return client.IgnoreNotFound(c.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version}))
}
