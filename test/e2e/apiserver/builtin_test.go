// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// Kubernetes' own controllers find our kinds by discovery and treat them as any other.

func TestBuiltin_GarbageCollectionFollowsOwners(t *testing.T) {
	owner, namespace, set := harness.Unique("owner"), harness.NewNamespace(t), harness.Unique("set")
	harness.NewSet(t, set)
	o := harness.NewManagedCluster(t, owner, nil)
	references := []metav1.OwnerReference{{APIVersion: "cluster.open-cluster-management.io/v1", Kind: "ManagedCluster", Name: owner, UID: o.UID}}
	client := harness.Kube(t, harness.Hub(t).AdminConfig()).CoreV1().ConfigMaps(namespace)
	harness.Must(client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: references}}, metav1.CreateOptions{}))(t)
	b := harness.Binding(namespace, set, set)
	b.OwnerReferences = references
	harness.Must(harness.Admin(t).ClusterV1beta2().ManagedClusterSetBindings(namespace).Create(t.Context(), b, metav1.CreateOptions{}))(t)
	if err := harness.Admin(t).ClusterV1().ManagedClusters().Delete(t.Context(), owner, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "what the cluster owned is gone", func(ctx context.Context) (bool, error) {
		_, configMap := client.Get(ctx, "owned", metav1.GetOptions{})
		_, ours := harness.Admin(t).ClusterV1beta2().ManagedClusterSetBindings(namespace).Get(ctx, set, metav1.GetOptions{})
		return apierrors.IsNotFound(configMap) && apierrors.IsNotFound(ours), nil
	})
}

func TestBuiltin_ForegroundDeletionAndFinalizers(t *testing.T) {
	name := harness.Unique("final")
	c := harness.NewManagedCluster(t, name, nil)
	c.Finalizers = []string{"cluster.open-cluster-management.io/api-resource-cleanup"}
	c = harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Update(t.Context(), c, metav1.UpdateOptions{}))(t)
	if err := harness.Admin(t).ClusterV1().ManagedClusters().Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "only the finalizer of the cluster is left", func(ctx context.Context) (bool, error) {
		got, err := harness.Admin(t).ClusterV1().ManagedClusters().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		c = got
		return got.DeletionTimestamp != nil && len(got.Finalizers) == 1, nil
	})
	c.Finalizers = nil
	harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Update(t.Context(), c, metav1.UpdateOptions{}))(t)
	harness.Eventually(t, "the cluster is gone", func(ctx context.Context) (bool, error) {
		_, err := harness.Admin(t).ClusterV1().ManagedClusters().Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

func TestBuiltin_NamespaceIsDeletedWithBindings(t *testing.T) {
	namespace, set := harness.NewNamespace(t), harness.Unique("set")
	harness.NewSet(t, set)
	bindings := harness.Admin(t).ClusterV1beta2().ManagedClusterSetBindings(namespace)
	harness.Must(bindings.Create(t.Context(), harness.Binding(namespace, set, set), metav1.CreateOptions{}))(t)
	namespaces := harness.Kube(t, harness.Hub(t).AdminConfig()).CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the namespace and its binding are gone", func(ctx context.Context) (bool, error) {
		_, ns := namespaces.Get(ctx, namespace, metav1.GetOptions{})
		_, b := bindings.Get(ctx, set, metav1.GetOptions{})
		return apierrors.IsNotFound(ns) && apierrors.IsNotFound(b), nil
	})
	if _, err := bindings.Create(t.Context(), harness.Binding(namespace, set, set), metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a binding in a namespace that is gone: %v, want a 404", err)
	}
}

func TestBuiltin_QuotaLimitsBindings(t *testing.T) {
	namespace := harness.NewNamespace(t)
	const counted = corev1.ResourceName("count/managedclustersetbindings.cluster.open-cluster-management.io")
	quotas := harness.Kube(t, harness.Hub(t).AdminConfig()).CoreV1().ResourceQuotas(namespace)
	harness.Must(quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "two"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{counted: resource.MustParse("2")}},
	}, metav1.CreateOptions{}))(t)
	harness.Eventually(t, "the quota counts", func(ctx context.Context) (bool, error) {
		q, err := quotas.Get(ctx, "two", metav1.GetOptions{})
		return err == nil && q.Status.Used[counted] == resource.MustParse("0"), err
	})
	bindings := harness.Admin(t).ClusterV1beta2().ManagedClusterSetBindings(namespace)
	var sets []string
	for i := range 3 {
		set := harness.Unique("set")
		harness.NewSet(t, set)
		sets = append(sets, set)
		_, err := bindings.Create(t.Context(), harness.Binding(namespace, set, set), metav1.CreateOptions{})
		if i < 2 && err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			harness.WantForbidden(t, err, "exceeded quota", "two")
		}
	}
	if err := bindings.Delete(t.Context(), sets[0], metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the place of a binding that is gone is free", func(ctx context.Context) (bool, error) {
		_, err := bindings.Create(ctx, harness.Binding(namespace, sets[2], sets[2]), metav1.CreateOptions{})
		return err == nil, err
	})
}
