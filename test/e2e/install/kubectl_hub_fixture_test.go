// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/kubelet"
)

// hubAndCluster returns a hub that registers clusters, and a cluster with a node.
func hubAndCluster(t *testing.T) (p harness.Plugin, h, cluster *localhub.Instance, node *kubelet.Kubelet) {
	t.Helper()
	h = harness.Relaunch(t, harness.LendHub(t), func(c *localhub.Options) {
		c.WithoutHubControllerManager, c.HubControllerManagerArgs = false, nil
	})
	cluster = harness.LendCluster(t)
	node = runsPods(t, cluster, h)
	return harness.Plugin{Kubeconfig: harness.WithContexts(t, map[string]*localhub.Instance{"hub": h, "c1": cluster})}, h, cluster, node
}

// runsPods adds a node to a cluster, whose pods reach the hub and get additional arguments.
func runsPods(t *testing.T, cluster, h *localhub.Instance, args ...string) *kubelet.Kubelet {
	t.Helper()
	hub := harness.Must(url.Parse(h.AdminConfig().Host))(t)
	return kubelet.Start(t, kubelet.Config{Cluster: cluster.AdminConfig(), BinDir: harness.BinDir(t), ImagesDir: harness.ImagesDir(), Args: args, Reach: []string{hub.Host}})
}

// attackWith makes requests that must be refused to a bootstrap token.
func attackWith(t *testing.T, h *localhub.Instance, token string) {
	t.Helper()
	config := rest.AnonymousClientConfig(h.AdminConfig())
	config.BearerToken = token
	hubClusters := harness.Ours(t, config).ClusterV1().ManagedClusters()
	kubeClient := harness.Kube(t, config)
	ctx := t.Context()
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	harness.Must(hubClusters.Create(ctx, harness.ManagedCluster("anything", nil), dryRun))(t)
	inOtherSet := harness.ManagedCluster("anything", map[string]string{harness.SetLabel: "other"})
	accepted := harness.ManagedCluster("anything", nil)
	accepted.Spec.HubAcceptsClient = true
	for name, attack := range map[string]func() error{
		"list clusters":    func() error { _, err := hubClusters.List(ctx, metav1.ListOptions{}); return err },
		"get a cluster":    func() error { _, err := hubClusters.Get(ctx, "anything", metav1.GetOptions{}); return err },
		"join another set": func() error { _, err := hubClusters.Create(ctx, inOtherSet, dryRun); return err },
		"accept itself":    func() error { _, err := hubClusters.Create(ctx, accepted, dryRun); return err },
		"delete a cluster": func() error { return hubClusters.Delete(ctx, "anything", metav1.DeleteOptions{}) },
		"read secrets":     func() error { _, err := kubeClient.CoreV1().Secrets("").List(ctx, metav1.ListOptions{}); return err },
		"read configuration": func() error {
			_, err := kubeClient.CoreV1().ConfigMaps("kube-system").List(ctx, metav1.ListOptions{})
			return err
		},
		"list the requests": func() error {
			_, err := kubeClient.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{})
			return err
		},
		"watch the requests": func() error {
			_, err := kubeClient.CertificatesV1().CertificateSigningRequests().Watch(ctx, metav1.ListOptions{TimeoutSeconds: new(int64(5))})
			return err
		},
		"remove its own role": func() error {
			return kubeClient.RbacV1().ClusterRoles().Delete(ctx, "clusterhub:bootstrap", metav1.DeleteOptions{})
		},
	} {
		if err := attack(); !apierrors.IsForbidden(err) {
			t.Errorf("%s with a bootstrap token: %v, want 403", name, err)
		}
	}
}

// checkAgentsRights compares the agent's rights on its cluster with those that it needs.
func checkAgentsRights(t *testing.T, cluster *localhub.Instance) {
	t.Helper()
	agent := cluster.UserConfig("system:serviceaccount:"+registration.AgentNamespace+":klusterlet-registration-sa",
		"system:serviceaccounts", "system:serviceaccounts:"+registration.AgentNamespace, "system:authenticated")
	client := harness.Kube(t, agent)
	for name, err := range map[string]error{
		"list its secrets":        harness.ErrorOf(client.CoreV1().Secrets(registration.AgentNamespace).List(t.Context(), metav1.ListOptions{})),
		"list all secrets":        harness.ErrorOf(client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})),
		"change its bootstrap":    client.CoreV1().Secrets(registration.AgentNamespace).Delete(t.Context(), registration.BootstrapSecret, metav1.DeleteOptions{}),
		"change its Deployment":   client.AppsV1().Deployments(registration.AgentNamespace).Delete(t.Context(), "hub-agent", metav1.DeleteOptions{}),
		"read its namespace":      harness.ErrorOf(client.CoreV1().Namespaces().Get(t.Context(), registration.AgentNamespace, metav1.GetOptions{})),
		"delete a namespace":      client.CoreV1().Namespaces().Delete(t.Context(), "x", metav1.DeleteOptions{}),
		"read another's secret":   harness.ErrorOf(client.CoreV1().Secrets("kube-system").Get(t.Context(), "x", metav1.GetOptions{})),
		"change a node":           client.CoreV1().Nodes().Delete(t.Context(), "node-1", metav1.DeleteOptions{}),
		"make pods":               harness.ErrorOf(client.CoreV1().Pods(registration.AgentNamespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})),
		"change its own rights":   client.RbacV1().ClusterRoles().Delete(t.Context(), "clusterhub:hub-agent", metav1.DeleteOptions{}),
		"read configuration maps": harness.ErrorOf(client.CoreV1().ConfigMaps(registration.AgentNamespace).List(t.Context(), metav1.ListOptions{})),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("the agent may %s: %v, want 403", name, err)
		}
	}
}

// inventory returns all objects that join and the hub's controllers could leave behind.
func inventory(t *testing.T, h *localhub.Instance) (names []string) {
	t.Helper()
	client := harness.Kube(t, h.AdminConfig())
	ctx, all := t.Context(), metav1.ListOptions{}
	add := func(kind string, list runtime.Object, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		objects := harness.Must(meta.ExtractList(list))(t)
		for _, o := range objects {
			m := harness.Must(meta.Accessor(o))(t)
			names = append(names, strings.Trim(kind+" "+strings.TrimPrefix(m.GetNamespace()+"/"+m.GetName(), "/"), " "))
		}
	}
	namespaces, err := client.CoreV1().Namespaces().List(ctx, all)
	add("Namespace", namespaces, err)
	accounts, err := client.CoreV1().ServiceAccounts("").List(ctx, all)
	add("ServiceAccount", accounts, err)
	secrets, err := client.CoreV1().Secrets("").List(ctx, all)
	add("Secret", secrets, err)
	pods, err := client.CoreV1().Pods("").List(ctx, all)
	add("Pod", pods, err)
	deployments, err := client.AppsV1().Deployments("").List(ctx, all)
	add("Deployment", deployments, err)
	jobs, err := client.BatchV1().Jobs("").List(ctx, all)
	add("Job", jobs, err)
	roles, err := client.RbacV1().Roles("").List(ctx, all)
	add("Role", roles, err)
	bindings, err := client.RbacV1().RoleBindings("").List(ctx, all)
	add("RoleBinding", bindings, err)
	clusterRoles, err := client.RbacV1().ClusterRoles().List(ctx, all)
	add("ClusterRole", clusterRoles, err)
	clusterBindings, err := client.RbacV1().ClusterRoleBindings().List(ctx, all)
	add("ClusterRoleBinding", clusterBindings, err)
	// kube-controller-manager creates these asynchronously.
	return slices.DeleteFunc(names, func(name string) bool {
		return strings.HasSuffix(name, "/default") || strings.HasPrefix(name, "ServiceAccount kube-system/")
	})
}

func difference(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return slices.Contains(b, name) })
}

func sameInventory(t *testing.T, where string, before, now []string) {
	t.Helper()
	if left := difference(now, before); len(left) > 0 {
		t.Errorf("%s has left: %v", where, left)
	}
	if lost := difference(before, now); len(lost) > 0 {
		t.Errorf("%s has lost: %v", where, lost)
	}
}
