// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/localhub"
	"github.com/clusterhub/clusterhub/test/kubelet"
)

// Management is a cluster whose one node runs pods, with hub-operator.
type Management struct {
	*localhub.Hub
	Node *kubelet.Kubelet
}

// StartManagement starts one, which ends with the test. The changes are of what its node is told.
func StartManagement(t testing.TB, changes ...func(*kubelet.Config)) *Management {
	t.Helper()
	config := HubConfig(filepath.Join(t.TempDir(), "cluster"))
	config.Plain = true
	cluster, err := localhub.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	node := kubelet.Config{Cluster: cluster.AdminConfig(), BinDir: config.BinDir,
		ArgsOf: map[string][]string{deploy.APIServer: {"--embedded-etcd-unsafe-no-fsync"}}} // as for all hubs of tests
	for _, change := range changes {
		change(&node)
	}
	m := &Management{Hub: cluster, Node: kubelet.Start(t, node)}
	m.must(t, "", "apply", "--server-side", "-k", Overlay("operator"))
	return m
}

// must is kubectl that has to succeed.
func (m *Management) must(t testing.TB, stdin string, args ...string) {
	t.Helper()
	cmd := m.Kubectl(t.Context(), args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// wait waits until the management cluster says something of an object.
func (m *Management) wait(t testing.TB, what string, args ...string) {
	t.Helper()
	m.must(t, "", append([]string{"wait", "--timeout=5m", "--for=" + what}, args...)...)
}

// ServerNamespace has the servers of a detached hub.
func ServerNamespace(name string) string { return name + "-open-cluster-management-hub" }

const clusterManager = `
apiVersion: operator.open-cluster-management.io/v1
kind: ClusterManager
metadata: {name: %s}
spec:
  deployOption: {mode: Detached}
  clusterhub:
    components: [%s]
    controllerManager: {replicas: 1}
`

// MakeHub makes a hub of a plain cluster by a ClusterManager in mode Detached, and waits until it serves. The servers are pods of the
// management cluster, and the cluster's kube-apiserver reaches them by the name of their Service: it has the flags of Node.Egress. The
// ports of this machine that the cluster has for its hub-apiservers lead to the one that runs, so that tests reach it as they reach that of
// a local hub.
func (m *Management) MakeHub(t testing.TB, name string, cluster *localhub.Hub, components ...string) {
	t.Helper()
	m.BeginHub(t, name, cluster, components...)
	m.AwaitHub(t, name, cluster)
}

// BeginHub does the first half of MakeHub: hub-operator makes the hub.
func (m *Management) BeginHub(t testing.TB, name string, cluster *localhub.Hub, components ...string) {
	t.Helper()
	if err := m.Node.Reach(strings.TrimPrefix(cluster.AdminConfig().Host, "https://")); err != nil {
		t.Fatal(err)
	}
	namespace := ServerNamespace(name)
	for _, address := range cluster.HubAPIServerAddresses() {
		m.Node.ForwardFrom(address, namespace, deploy.APIServer, 443)
	}
	m.wait(t, "condition=Established", "crd/clustermanagers.operator.open-cluster-management.io")
	m.must(t, fmt.Sprintf(clusterManager, name, strings.Join(components, ", ")), "apply", "-f", "-")
	// The user is told that a Secret is missing, and the place for it is there.
	m.wait(t, "condition=ReadyToApply=false", "clustermanager/"+name)
	m.must(t, "", "create", "secret", "generic", "external-hub-kubeconfig", "-n", namespace, "--from-file=kubeconfig="+cluster.AdminKubeconfig())
	m.wait(t, "condition=ReadyToApply", "clustermanager/"+name)
}

// AwaitHub does the second half: it waits until the hub serves.
func (m *Management) AwaitHub(t testing.TB, name string, cluster *localhub.Hub) {
	t.Helper()
	m.wait(t, "condition=Available", "clustermanager/"+name)
	m.wait(t, "condition=Available", "-n", ServerNamespace(name), "deployment", "--all")
	if err := cluster.AwaitServed(t.Context()); err != nil {
		t.Fatal(err)
	}
}
