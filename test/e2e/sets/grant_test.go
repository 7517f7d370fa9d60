// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestGrant_LastsUntilSetIsDeleted verifies that a role of kubectl hub grant has the rights of docs/permissions.md on this set only, and
// is deleted with the set.
func TestGrant_LastsUntilSetIsDeleted(t *testing.T) {
	set, other, who, namespace := harness.Unique("set"), harness.Unique("set"), harness.Unique("user"), harness.Unique("team")
	harness.NewSet(t, set)
	harness.NewSet(t, other)
	plugin := harness.Plugin{Kubeconfig: harness.Hub(t).AdminKubeconfig()}
	client := harness.Ours(t, harness.Hub(t).UserConfig(who, "system:authenticated"))
	sees := func(set string) error {
		return harness.ErrorOf(client.ClusterV1beta2().ManagedClusterSets().Get(t.Context(), set, metav1.GetOptions{}))
	}
	// The dry run leaves no cluster.
	makes := func(cluster, set string) error {
		c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster, Labels: map[string]string{harness.SetLabel: set}}}
		return harness.ErrorOf(client.ClusterV1().ManagedClusters().Create(t.Context(), c, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	}
	becomes := func(what string, allowed bool, try func() error) {
		t.Helper()
		harness.Eventually(t, what, func(context.Context) (bool, error) {
			err := try()
			if err != nil && !apierrors.IsForbidden(err) {
				return false, err
			}
			return harness.Holds((err == nil) == allowed, err)
		})
	}

	harness.WantForbidden(t, sees(set))
	harness.Contains(t, plugin.Must(t, "grant", set, "--role", "viewer", "--user", who), "is granted to user "+who)
	becomes("the viewer sees the set", true, func() error { return sees(set) })
	harness.WantForbidden(t, sees(other))
	mine, foreign := harness.Unique("cluster"), harness.Unique("cluster")
	harness.NewManagedCluster(t, mine, map[string]string{harness.SetLabel: set})
	harness.NewManagedCluster(t, foreign, map[string]string{harness.SetLabel: other})
	harness.Eventually(t, "the viewer lists the clusters of the set, and no others", func(context.Context) (bool, error) {
		out, _, err := plugin.Run(t, "get", "clusters", "-o", "name", "--as", who)
		return harness.Holds(err == nil && strings.TrimSpace(out) == "managedcluster.cluster.open-cluster-management.io/"+mine, out)
	})
	harness.WantForbidden(t, makes(harness.Unique("cluster"), set))

	plugin.Must(t, "grant", set, "--role", "admin", "--user", who)
	becomes("the set's admin makes a cluster in it", true, func() error { return makes(harness.Unique("cluster"), set) })
	harness.WantForbidden(t, makes(harness.Unique("cluster"), other), harness.SetLabel+":"+other)

	plugin.Must(t, "label", mine, "owner=team", "--as", who)
	for _, refused := range [][]string{{"label", foreign, "owner=team"}, {"label", mine, harness.SetLabel + "=" + other, "--overwrite"},
		{"delete", "cluster", foreign}} {
		if out, _, err := plugin.Run(t, append(refused, "--as", who)...); err == nil {
			t.Errorf("%q of the set's admin: %s", refused, out)
		}
	}

	harness.Contains(t, plugin.Must(t, "delete", "cluster", mine, "--wait", "--as", who), "managedcluster \""+mine+"\" deleted")
	if _, err := harness.Admin(t).ClusterV1().ManagedClusters().Get(t.Context(), mine, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the cluster is left: %v", err)
	}

	// The remaining rights for a binding come with Kubernetes' role of the namespace.
	harness.MustKubectl(t, "", "create", "namespace", namespace)
	t.Cleanup(func() {
		_ = harness.Hub(t).Kubectl(context.WithoutCancel(t.Context()), "delete", "namespace", namespace, "--wait=false").Run()
	})
	harness.MustKubectl(t, "", "create", "rolebinding", "editor", "--namespace="+namespace, "--clusterrole=edit", "--user="+who)
	binds := func(set string) error {
		b := &v1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Name: set}, Spec: v1beta2.ManagedClusterSetBindingSpec{ClusterSet: set}}
		return harness.ErrorOf(client.ClusterV1beta2().ManagedClusterSetBindings(namespace).Create(t.Context(), b, metav1.CreateOptions{}))
	}
	becomes("the set's admin binds it", true, func() error { return binds(set) })
	harness.WantForbidden(t, binds(other))

	plugin.Must(t, "revoke", set, "--role", "admin", "--user", who)
	becomes("who was the set's admin makes no cluster", false, func() error { return makes(harness.Unique("cluster"), set) })
	if err := sees(set); err != nil {
		t.Errorf("the viewer's role is gone, too: %v", err)
	}

	// A new set of the same name grants nothing to users with rights on the previous one.
	harness.DeleteSet(t, set)
	rbac := harness.Kube(t, harness.Hub(t).AdminConfig()).RbacV1()
	harness.Eventually(t, "the roles of the set are gone", func(ctx context.Context) (bool, error) {
		for _, role := range []string{"admin", "viewer"} {
			_, err := rbac.ClusterRoles().Get(ctx, "clusterhub:set:"+set+":"+role, metav1.GetOptions{})
			_, bound := rbac.ClusterRoleBindings().Get(ctx, "clusterhub:set:"+set+":"+role, metav1.GetOptions{})
			if !apierrors.IsNotFound(err) || !apierrors.IsNotFound(bound) {
				return harness.Holds(false, []error{err, bound})
			}
		}
		return true, nil
	})
}
