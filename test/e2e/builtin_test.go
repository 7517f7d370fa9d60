// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/controllers/sets/clustersetstatus"
)

// Kubernetes' own controllers find our kinds by discovery and treat them as any other.

func TestBuiltin_GarbageCollectionFollowsOwners(t *testing.T) {
	owner, namespace, set := unique("owner"), newNamespace(t), unique("set")
	newSet(t, set)
	o := newCluster(t, owner, nil)
	references := []metav1.OwnerReference{{APIVersion: "cluster.open-cluster-management.io/v1", Kind: "ManagedCluster", Name: owner, UID: o.UID}}
	client := kube(t, hub.AdminConfig()).CoreV1().ConfigMaps(namespace)
	must(client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: references}}, metav1.CreateOptions{}))(t)
	b := binding(namespace, set, set)
	b.OwnerReferences = references
	must(admin(t).ClusterV1beta2().ManagedClusterSetBindings(namespace).Create(t.Context(), b, metav1.CreateOptions{}))(t)
	if err := admin(t).ClusterV1().ManagedClusters().Delete(t.Context(), owner, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what the cluster owned is gone", func(ctx context.Context) (bool, error) {
		_, configMap := client.Get(ctx, "owned", metav1.GetOptions{})
		_, ours := admin(t).ClusterV1beta2().ManagedClusterSetBindings(namespace).Get(ctx, set, metav1.GetOptions{})
		return apierrors.IsNotFound(configMap) && apierrors.IsNotFound(ours), nil
	})
}

func TestBuiltin_ForegroundDeletionAndFinalizersWork(t *testing.T) {
	name := unique("final")
	c := newCluster(t, name, nil)
	c.Finalizers = []string{"cluster.open-cluster-management.io/api-resource-cleanup"}
	c = must(admin(t).ClusterV1().ManagedClusters().Update(t.Context(), c, metav1.UpdateOptions{}))(t)
	if err := admin(t).ClusterV1().ManagedClusters().Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "only the finalizer of the cluster is left", func(ctx context.Context) (bool, error) {
		got, err := admin(t).ClusterV1().ManagedClusters().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		c = got
		return got.DeletionTimestamp != nil && len(got.Finalizers) == 1, nil
	})
	c.Finalizers = nil
	must(admin(t).ClusterV1().ManagedClusters().Update(t.Context(), c, metav1.UpdateOptions{}))(t)
	eventually(t, "the cluster is gone", func(ctx context.Context) (bool, error) {
		_, err := admin(t).ClusterV1().ManagedClusters().Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

func TestBuiltin_ANamespaceIsDeletedWithItsBindings(t *testing.T) {
	namespace, set := newNamespace(t), unique("set")
	newSet(t, set)
	bindings := admin(t).ClusterV1beta2().ManagedClusterSetBindings(namespace)
	must(bindings.Create(t.Context(), binding(namespace, set, set), metav1.CreateOptions{}))(t)
	namespaces := kube(t, hub.AdminConfig()).CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace and its binding are gone", func(ctx context.Context) (bool, error) {
		_, ns := namespaces.Get(ctx, namespace, metav1.GetOptions{})
		_, b := bindings.Get(ctx, set, metav1.GetOptions{})
		return apierrors.IsNotFound(ns) && apierrors.IsNotFound(b), nil
	})
	if _, err := bindings.Create(t.Context(), binding(namespace, set, set), metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a binding in a namespace that is gone: %v, want a 404", err)
	}
}

func TestBuiltin_AQuotaLimitsBindings(t *testing.T) {
	namespace := newNamespace(t)
	const counted = corev1.ResourceName("count/managedclustersetbindings.cluster.open-cluster-management.io")
	quotas := kube(t, hub.AdminConfig()).CoreV1().ResourceQuotas(namespace)
	must(quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "two"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{counted: resource.MustParse("2")}},
	}, metav1.CreateOptions{}))(t)
	eventually(t, "the quota counts", func(ctx context.Context) (bool, error) {
		q, err := quotas.Get(ctx, "two", metav1.GetOptions{})
		return err == nil && q.Status.Used[counted] == resource.MustParse("0"), err
	})
	bindings := admin(t).ClusterV1beta2().ManagedClusterSetBindings(namespace)
	var sets []string
	for i := range 3 {
		set := unique("set")
		newSet(t, set)
		sets = append(sets, set)
		_, err := bindings.Create(t.Context(), binding(namespace, set, set), metav1.CreateOptions{})
		if i < 2 && err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			wantForbidden(t, err, "exceeded quota", "two")
		}
	}
	if err := bindings.Delete(t.Context(), sets[0], metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the place of a binding that is gone is free", func(ctx context.Context) (bool, error) {
		_, err := bindings.Create(ctx, binding(namespace, sets[2], sets[2]), metav1.CreateOptions{})
		return err == nil, err
	})
}

func TestStatus_SetsCountTheirMembers(t *testing.T) {
	set, n := unique("set"), 5
	newSet(t, set)
	condition := func(ctx context.Context) (string, error) {
		s, err := admin(t).ClusterV1beta2().ManagedClusterSets().Get(ctx, set, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		for _, c := range s.Status.Conditions {
			if c.Type == "ClusterSetEmpty" {
				return fmt.Sprintf("%s %s %s %d", c.Status, c.Reason, c.Message, s.Generation-c.ObservedGeneration), nil
			}
		}
		return "", nil
	}
	wait := func(want string) {
		t.Helper()
		eventually(t, want, func(ctx context.Context) (bool, error) {
			got, err := condition(ctx)
			if err == nil && got != want {
				err = fmt.Errorf("it is %q", got)
			}
			return err == nil, err
		})
	}
	wait("True NoClusterMatched No ManagedCluster selected 0")
	for range n {
		newCluster(t, unique("cluster"), map[string]string{setLabel: set})
	}
	wait("False ClustersSelected 5 ManagedClusters selected 0")
}

func TestStatus_ManyJoinsAreFewWrites(t *testing.T) {
	set, started := unique("set"), time.Now()
	newSet(t, set)
	sets := admin(t).ClusterV1beta2().ManagedClusterSets()
	start := must(sets.List(t.Context(), metav1.ListOptions{}))(t).ResourceVersion
	w := must(sets.Watch(t.Context(), metav1.ListOptions{ResourceVersion: start, FieldSelector: "metadata.name=" + set}))(t)
	defer w.Stop()
	const n = 500
	for range n {
		newCluster(t, unique("cluster"), map[string]string{setLabel: set})
	}
	writes := 0
	eventually(t, "all are counted", func(ctx context.Context) (bool, error) {
		s, err := sets.Get(ctx, set, metav1.GetOptions{})
		for {
			select {
			case e, open := <-w.ResultChan():
				if !open || e.Type != watch.Modified {
					t.Fatalf("the watch says %s, open %t", e.Type, open)
				}
				writes++
				continue
			default:
			}
			break
		}
		return err == nil && len(s.Status.Conditions) > 0 && s.Status.Conditions[0].Message == fmt.Sprintf("%d ManagedClusters selected", n), err
	})
	if took := time.Since(started); writes > int(took/clustersetstatus.Spacing)+2 {
		t.Errorf("%d joins have caused %d writes in %s, want one per %s", n, writes, took, clustersetstatus.Spacing)
	}
}

func TestDefaultSets_ExistAndComeBack(t *testing.T) {
	sets := admin(t).ClusterV1beta2().ManagedClusterSets()
	for _, name := range []string{"default", "global"} {
		before := must(sets.Get(t.Context(), name, metav1.GetOptions{}))(t)
		if err := sets.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+" is back", func(ctx context.Context) (bool, error) {
			s, err := sets.Get(ctx, name, metav1.GetOptions{})
			return err == nil && s.UID != before.UID && s.Spec.ClusterSelector.SelectorType == before.Spec.ClusterSelector.SelectorType, err
		})
	}
}

func TestDeletion_OfASetInUseWarnsAndNamesHowMany(t *testing.T) {
	set, namespace := unique("set"), newNamespace(t)
	newSet(t, set)
	for range 3 {
		newCluster(t, unique("cluster"), map[string]string{setLabel: set})
	}
	must(admin(t).ClusterV1beta2().ManagedClusterSetBindings(namespace).Create(t.Context(), binding(namespace, set, set), metav1.CreateOptions{}))(t)
	config, w := warned(hub.AdminConfig())
	if err := ours(t, config).ClusterV1beta2().ManagedClusterSets().Delete(t.Context(), set, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if !w.has(set, "3 member", "1 binding") {
		t.Errorf("the warnings are %q", w.all)
	}
}
