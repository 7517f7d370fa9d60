// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Strategy creates an object if have is nil, and otherwise updates it to what is desired. It writes only if the existing object is still have: after
// a change by others it fails, with a conflict or because the object exists already. It may change its arguments.
type Strategy func(ctx context.Context, c client.Client, want, have client.Object) error

// Update replaces the whole content of an object, so that nothing stays of what others put there. Their metadata stays.
func Update(ctx context.Context, c client.Client, want, have client.Object) error {
	if have == nil {
		return c.Create(ctx, want)
	}
	before := have.DeepCopyObject()
	if err := copyContent(want, have); err != nil {
		return err
	}
	have.SetLabels(labels.Merge(have.GetLabels(), want.GetLabels()))
	have.SetAnnotations(labels.Merge(have.GetAnnotations(), want.GetAnnotations()))
	if equality.Semantic.DeepEqual(before, have) {
		return nil
	}
	return c.Update(ctx, have)
}

// copyContent copies the content of an object.
func copyContent(from, to client.Object) error {
	switch from := from.(type) {
	case *corev1.ServiceAccount: // its fields are written by the controllers that create its tokens
	case *rbacv1.Role:
		to.(*rbacv1.Role).Rules = from.Rules
	case *rbacv1.ClusterRole:
		to.(*rbacv1.ClusterRole).Rules = from.Rules
		to.(*rbacv1.ClusterRole).AggregationRule = from.AggregationRule
	case *rbacv1.RoleBinding:
		to.(*rbacv1.RoleBinding).Subjects = from.Subjects
	case *rbacv1.ClusterRoleBinding:
		to.(*rbacv1.ClusterRoleBinding).Subjects = from.Subjects
	default:
		return fmt.Errorf("%T cannot be updated: say in copyContent what it is about, or apply it on the server's side", from)
	}
	return nil
}

// notYet is a resource version that no object has: a store starts at a higher one. The server ignores it if the object does not exist, and responds
// with a conflict if it does.
const notYet = "1"

// ServerSideApply returns a strategy that lets the server change the given fields and no others, including fields with another manager. A server
// writes nothing if nothing changes. Objects must be unstructured: typed ones would send fields that were never set.
func ServerSideApply(manager string) Strategy {
	return func(ctx context.Context, c client.Client, want, have client.Object) error {
		given, ok := want.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("%T cannot be applied on the server's side: only unstructured objects can", want)
		}
		given.SetResourceVersion(notYet)
		if have != nil {
			given.SetResourceVersion(have.GetResourceVersion())
		}
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(given), client.FieldOwner(manager), client.ForceOwnership)
	}
}
