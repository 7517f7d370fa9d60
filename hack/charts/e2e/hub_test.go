// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/hack/charts"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/kubelet"
)

// TestHubAndCluster: a hub and the agent of a cluster run with what their charts say and with nothing else, and the cluster joins by
// values alone.
func TestHubAndCluster(t *testing.T) {
	hub, run := withNode(t)
	cluster := harness.Hub(t)

	onHub := newHelm(t, hub, charts.Hub, charts.HubNamespace)
	harness.Must(onHub.install(map[string]any{"registration": on("bootstrap")}))(t)
	endpoint(t, hub)
	hubNode := run(nil)
	ready(t, hub, charts.HubNamespace)
	served(t, hub)

	p := harness.Plugin{Kubeconfig: harness.WithContexts(t, map[string]*localhub.Instance{"hub": hub, "c1": cluster})}
	joining := p.Joining(t, "get", "token", "--context", "hub")
	front := harness.Must(url.Parse(joining.Server))(t)
	node := kubelet.Start(t, kubelet.Config{Cluster: cluster.AdminConfig(), BinDir: harness.BinDir(t), Reach: []string{front.Host}})
	namespace(t, cluster, charts.AgentNamespace)
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "hub-token"}, StringData: map[string]string{"token": joining.Token}}
	harness.Must(harness.Kube(t, cluster.AdminConfig()).CoreV1().Secrets(charts.AgentNamespace).Create(t.Context(), token, metav1.CreateOptions{}))(t)
	onCluster := newHelm(t, cluster, charts.Agent, charts.AgentNamespace)
	values := gitopsValues(t)
	bootstrap := values["bootstrap"].(map[string]any)
	bootstrap["server"], bootstrap["caData"] = joining.Server, joining.CA
	values["metrics"] = on("enabled")
	values["works"].(map[string]any)["upgradable"] = true
	for _, name := range []string{"team-a", "team-b"} {
		namespace(t, cluster, name)
	}
	r := harness.Must(onCluster.install(values))(t)
	if strings.Contains(r.Manifest, joining.Token) {
		t.Error("the release has the token")
	}
	harness.Eventually(t, "the cluster asks to join", func(ctx context.Context) (bool, error) {
		_, err := harness.Ours(t, hub.AdminConfig()).ClusterV1().ManagedClusters().Get(ctx, "c1", metav1.GetOptions{})
		return err == nil, err
	})
	p.Must(t, "accept", "--clusters", "c1", "--context", "hub")
	ready(t, cluster, charts.AgentNamespace)
	harness.Eventually(t, "the cluster is available", func(ctx context.Context) (bool, error) {
		found, err := harness.Ours(t, hub.AdminConfig()).ClusterV1().ManagedClusters().Get(ctx, "c1", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if found.Labels["environment"] != "production" {
			return false, fmt.Errorf("its labels are %v", found.Labels)
		}
		return harness.Holds(meta.IsStatusConditionTrue(found.Status.Conditions, "ManagedClusterConditionAvailable"), found.Status.Conditions)
	})

	scrape(t, hub, hubNode, charts.HubNamespace, "hub-controller-manager-", 2, "clusterhub:metrics-reader", `leader_election_master_status{name="hub-controller-manager"} `)
	scrape(t, cluster, node, charts.AgentNamespace, "hub-agent-", 1, "clusterhub:hub-agent-metrics-reader", "hub_agent_certificate_expiration_seconds ")

	upgradeFromTheHub(onCluster, hub, p, values)

	for _, h := range []*helm{onCluster, onHub} {
		if err := h.uninstall(); err != nil {
			t.Error(err)
		}
	}
	if left := bundled(onHub); len(left) > 0 {
		t.Errorf("uninstall leaves the APIServices %v", left)
	}
	clean(onCluster)
	// With what the agent has made, such as its way to this hub.
	if err := harness.Kube(t, cluster.AdminConfig()).CoreV1().Namespaces().Delete(t.Context(), charts.AgentNamespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	gone(t, cluster, charts.AgentNamespace)
}

// withNode starts a cluster that can be a hub. Its kube-apiserver gets to the pods of hub-apiserver once there is a node, which runs pods from when
// run is called, with further arguments of the containers with a name.
func withNode(t *testing.T) (hub *localhub.Instance, run func(argsOf map[string][]string) *kubelet.Kubelet) {
	t.Helper()
	var node atomic.Pointer[kubelet.Kubelet]
	flags, stop, err := localserver.Egress(func(ctx context.Context, address string) (net.Conn, error) {
		if k := node.Load(); k != nil {
			return k.Dial(ctx, charts.HubNamespace, "hub-apiserver", 8443)
		}
		return nil, fmt.Errorf("%s: there are no pods yet", address)
	}).Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	// As if kube-apiserver could reach the one Service that there is.
	hub = harness.OwnHub(t, func(c *localhub.Options) { c.Plain, c.FrontArgs = true, flags })
	return hub, func(argsOf map[string][]string) *kubelet.Kubelet {
		node.Store(kubelet.Start(t, kubelet.Config{Cluster: hub.AdminConfig(), BinDir: harness.BinDir(t), ArgsOf: argsOf}))
		return node.Load()
	}
}

// gitopsValues are those of the example for Flux.
func gitopsValues(t *testing.T) map[string]any {
	t.Helper()
	text := harness.Must(os.ReadFile(filepath.Join(harness.Root, "examples", "gitops", "flux.yaml")))(t)
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var release struct {
			Kind string
			Spec struct{ Values map[string]any }
		}
		if err := yaml.Unmarshal([]byte(document), &release); err != nil {
			t.Fatal(err)
		}
		if release.Kind == "HelmRelease" {
			return release.Spec.Values
		}
	}
	t.Fatal("there is no HelmRelease")
	return nil
}

func on(name string) map[string]any { return map[string]any{name: true} }

// endpoint says that the Service has a pod. Pods have no addresses here: whatever it is, the front gets to the pod.
func endpoint(t *testing.T, hub *localhub.Instance) {
	t.Helper()
	yes, name, port := true, "https", int32(8443)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "hub-apiserver", Labels: map[string]string{discoveryv1.LabelServiceName: "hub-apiserver", discoveryv1.LabelManagedBy: "test"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &yes}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
	}
	harness.Must(harness.Kube(t, hub.AdminConfig()).DiscoveryV1().EndpointSlices(charts.HubNamespace).Create(t.Context(), slice, metav1.CreateOptions{}))(t)
}

// ready waits until all pods of a release are.
func ready(t *testing.T, cluster *localhub.Instance, namespace string) {
	t.Helper()
	harness.Eventually(t, "all pods in "+namespace+" are ready", func(ctx context.Context) (bool, error) {
		all, err := harness.Kube(t, cluster.AdminConfig()).AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(all.Items) == 0 {
			return false, errors.Join(err, errors.New("there are no Deployments"))
		}
		var waits []string
		for _, d := range all.Items {
			if d.Status.ReadyReplicas != *d.Spec.Replicas {
				waits = append(waits, fmt.Sprintf("%s: %d of %d", d.Name, d.Status.ReadyReplicas, *d.Spec.Replicas))
			}
		}
		slices.Sort(waits)
		return harness.Holds(len(waits) == 0, waits)
	})
}

// served waits until the front serves what hub-apiserver does.
func served(t *testing.T, hub *localhub.Instance) {
	t.Helper()
	harness.Eventually(t, "the hub's APIs are served", func(ctx context.Context) (bool, error) {
		_, err := harness.Ours(t, hub.AdminConfig()).ClusterV1().ManagedClusters().List(ctx, metav1.ListOptions{})
		return err == nil, err
	})
}
