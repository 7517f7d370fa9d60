// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"errors"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func made(name string) *corev1.Namespace {
	namespace := &corev1.Namespace{ObjectMeta: objectMeta(name, "", name)}
	namespace.Annotations = map[string]string{registration.AnnotationMade: name}
	return namespace
}

func withCondition(cluster *clusterv1.ManagedCluster, reason string) *clusterv1.ManagedCluster {
	status := metav1.ConditionFalse
	if reason == registration.ReasonAccepted {
		status = metav1.ConditionTrue
	}
	cluster.Spec.HubAcceptsClient = reason == registration.ReasonAccepted
	cluster.Status.Conditions = []metav1.Condition{{Type: registration.ConditionHubAccepted, Status: status, Reason: reason}}
	return cluster
}

func TestNamespace_DeletedWhenEmpty(t *testing.T) {
	theirs := made("c1")
	theirs.Annotations = nil
	for name, test := range map[string]struct {
		namespace *corev1.Namespace
		cluster   *clusterv1.ManagedCluster
		left      string
		err       error
		goes      bool
		retried   bool
	}{
		"the cluster is gone":                         {namespace: made("c1"), goes: true},
		"the cluster is denied":                       {namespace: made("c1"), cluster: withCondition(newCluster("c1"), registration.ReasonDenied), goes: true},
		"the cluster is being denied":                 {namespace: made("c1"), cluster: withCondition(newCluster("c1"), registration.ReasonError)},
		"the cluster is accepted":                     {namespace: made("c1"), cluster: withCondition(newCluster("c1"), registration.ReasonAccepted)},
		"a cluster that nobody has accepted":          {namespace: made("c1"), cluster: func() *clusterv1.ManagedCluster { c := newCluster("c1"); deny(c); return c }()},
		"somebody else made the namespace":            {namespace: theirs},
		"something is left":                           {namespace: made("c1"), left: "secrets token", retried: true},
		"nobody can say whether anything is left":     {namespace: made("c1"), err: errors.New("a group is not served"), retried: true},
		"the right to look has not been granted here": {namespace: made("c1"), err: apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil), retried: true},
	} {
		t.Run(name, func(t *testing.T) {
			objs := []client.Object{test.namespace}
			if test.cluster != nil {
				objs = append(objs, test.cluster)
			}
			n := newNamespacesOf(t, func(context.Context, string) (string, error) { return test.left, test.err }, objs...)
			result, err := n.Reconcile(t.Context(), request("c1"))
			gone := apierrors.IsNotFound(n.live.Get(t.Context(), client.ObjectKey{Name: "c1"}, &corev1.Namespace{}))
			if gone != test.goes {
				t.Errorf("gone: %t, want %t", gone, test.goes)
			}
			if retried := err != nil || result.RequeueAfter > 0; retried != test.retried {
				t.Errorf("%v, %v: tried again %t, want %t", result, err, retried, test.retried)
			}
		})
	}
}

func newNamespacesOf(t *testing.T, left func(context.Context, string) (string, error), objs ...client.Object) *namespaces {
	t.Helper()
	scheme := newScheme(t)
	if err := authenticationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if review, ok := obj.(*authenticationv1.SelfSubjectReview); ok {
				review.Status.UserInfo.Username = "system:serviceaccount:clusterhub-system:hub-controller-manager"
				return nil
			}
			return c.Create(ctx, obj, opts...)
		},
	}).Build()
	return newNamespaces(c, c, left)
}

// The permission to list what is in a namespace exists only during the checks, and only for this process.
func TestNamespace_ListPermissionIsTemporary(t *testing.T) {
	found := "secrets token"
	var n *namespaces
	binding := func() *rbacv1.RoleBinding {
		b := &rbacv1.RoleBinding{}
		if n.live.Get(t.Context(), client.ObjectKey{Namespace: "c1", Name: registration.InspectorRoleBinding}, b) != nil {
			return nil
		}
		return b
	}
	n = newNamespacesOf(t, func(context.Context, string) (string, error) {
		if binding() == nil {
			return "", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)
		}
		return found, nil
	}, made("c1"))
	look := func() {
		t.Helper()
		if result, err := n.Reconcile(t.Context(), request("c1")); err != nil || found != "" && result.RequeueAfter <= 0 {
			t.Fatalf("%v, %v", result, err)
		}
	}
	look()
	b := binding()
	if b == nil || b.RoleRef.Name != registration.InspectorClusterRole || len(b.Subjects) != 1 ||
		b.Subjects[0].Name != "system:serviceaccount:clusterhub-system:hub-controller-manager" {
		t.Fatalf("bound by %v", b)
	}
	look()
	if binding() != nil {
		t.Error("the right stays")
	}
	look()
	found = ""
	look()
	if !apierrors.IsNotFound(n.live.Get(t.Context(), client.ObjectKey{Name: "c1"}, &corev1.Namespace{})) {
		t.Error("the namespace stays")
	}
}
