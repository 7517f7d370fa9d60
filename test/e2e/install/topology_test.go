// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestTopology_SurvivesLossOfOneEach verifies that with an etcd of three members and two of each API server, one of each can be killed and restarts.
func TestTopology_SurvivesLossOfOneEach(t *testing.T) {
	counts := func(c *localhub.Options) {
		c.FrontReplicas, c.Replicas, c.EtcdMembers, c.Clusters = 2, 2, 3, 1
		c.WithoutHubControllerManager, c.WithoutKubeControllerManager = true, true
	}
	h := harness.OwnHub(t, counts)
	for replica := range 2 {
		addsToSet(t, harness.Ours(t, h.FrontConfig(replica)), fmt.Sprintf("front-%d", replica))
	}

	if err := h.KillEtcd(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	h.KillFront(0)
	h.KillHubAPIServer(0)
	if err := h.RouteFront(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if got, want := h.AdminConfig().Host, h.FrontConfig(1).Host; got != want {
		t.Errorf("the kubeconfig names %s, want the front that is left, %s", got, want)
	}
	addsToSet(t, harness.Ours(t, h.AdminConfig()), "without")

	for _, start := range []func(context.Context, int) error{h.StartEtcd, h.StartFront, h.StartHubAPIServer, h.RouteFront} {
		if err := start(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	// The rest of each etcd serves only with the member that has restarted.
	if err := h.KillEtcd(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	back := harness.Ours(t, h.FrontConfig(0))
	addsToSet(t, back, "back")
	all := harness.Must(back.ClusterV1().ManagedClusters().List(t.Context(), metav1.ListOptions{}))(t)
	if len(all.Items) != 4 {
		t.Errorf("%d clusters are left of 4", len(all.Items))
	}

	wantNothingOfOurs(t, h)
	t.Run("another topology", func(t *testing.T) {
		config := harness.HubConfig(h.Dir())
		counts(&config)
		config.EtcdMembers = 1
		if _, err := localhub.Start(t.Context(), config); err == nil || !strings.Contains(err.Error(), "has 3, which cannot change") {
			t.Errorf("an etcd of three becomes one: %v", err)
		}
		config.FrontReplicas, config.Replicas, config.EtcdMembers = 1, 1, 0
		less := harness.Must(localhub.Start(t.Context(), config))(t)
		for name := range less.PIDs() {
			if strings.Contains(name, "apiserver-1") {
				t.Errorf("%s runs, which is not asked for any more", name)
			}
		}
		if got := less.PIDs(); got["etcd-1"] == 0 || got["hub-etcd-1"] == 0 {
			t.Errorf("the members of etcd that were killed are not there again: %v", got)
		}
		addsToSet(t, harness.Ours(t, less.AdminConfig()), "less")
	})
	h.Stop()
	for _, each := range append(harness.Must(h.Clusters())(t), h) {
		if left := each.PIDs(); len(left) > 0 {
			t.Errorf("these run in %s when the hub has stopped: %v", each.Dir(), left)
		}
	}
}

// addsToSet creates a set and a cluster in it, waits for both in watches, and lists the set's members.
func addsToSet(t *testing.T, client versioned.Interface, name string) {
	t.Helper()
	clusters := harness.Must(client.ClusterV1().ManagedClusters().Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name}))(t)
	defer clusters.Stop()
	members := harness.Must(client.ViewV1alpha1().ClusterSetMembers().Watch(t.Context(), harness.InSet(name)))(t)
	defer members.Stop()
	harness.Must(client.ClusterV1beta2().ManagedClusterSets().Create(t.Context(), harness.LegacySet(name), metav1.CreateOptions{}))(t)
	harness.Must(client.ClusterV1().ManagedClusters().Create(t.Context(), harness.ManagedCluster(name, map[string]string{harness.SetLabel: name}), metav1.CreateOptions{}))(t)
	for what, w := range map[string]watch.Interface{"cluster": clusters, "member": members} {
		select {
		case event, open := <-w.ResultChan():
			if !open || event.Type != watch.Added {
				t.Errorf("the watch of the %s %s got %+v", what, name, event)
			}
		case <-time.After(harness.Timeout):
			t.Errorf("the watch of the %s %s got nothing", what, name)
		}
	}
	harness.Eventually(t, "the member "+name, func(context.Context) (bool, error) {
		list, err := client.ViewV1alpha1().ClusterSetMembers().List(t.Context(), harness.InSet(name))
		return err == nil && len(list.Items) == 1, err
	})
}

// wantNothingOfOurs verifies that the cluster beside a hub has the Kubernetes API only.
func wantNothingOfOurs(t *testing.T, h *localhub.Instance) {
	t.Helper()
	clusters := harness.Must(h.Clusters())(t)
	if len(clusters) != 1 {
		t.Fatalf("%d clusters are beside the hub, want 1", len(clusters))
	}
	config := clusters[0].AdminConfig()
	harness.Must(harness.Kube(t, config).CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{}))(t)
	_, err := harness.Kube(t, config).Discovery().ServerResourcesForGroupVersion(clusterv1.SchemeGroupVersion.String())
	if !apierrors.IsNotFound(err) {
		t.Errorf("a plain cluster answers for %s: %v", clusterv1.SchemeGroupVersion, err)
	}
}
