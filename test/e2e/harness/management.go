// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clusterhub/clusterhub/pkg/deploy"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/kubelet"
)

// Management is a management cluster with one node that runs pods.
type Management struct {
	*localhub.Instance
	Node *kubelet.Kubelet
	// Audit is the file with all requests of hub-operator to the cluster.
	Audit string
}

// OperatorImage is the image of hub-operator on the node.
const OperatorImage = "clusterhub/hub-operator:v0.0.0"

// StartManagement starts a management cluster, without hub-operator, that is stopped when the test ends. The changes adapt the configuration of its
// node.
func StartManagement(t testing.TB, changes ...func(*kubelet.Config)) *Management {
	t.Helper()
	config := HubConfig(filepath.Join(t.TempDir(), "cluster"))
	config.Plain = true
	var audit string
	config.FrontArgs, audit = Audited(t, "system:serviceaccount:clusterhub-operator:hub-operator")
	cluster, err := localhub.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Kill)
	node := kubelet.Config{Cluster: cluster.AdminConfig(), BinDir: config.BinDir, ImagesDir: config.ImagesDir, ReadyFor: time.Minute,
		// These are the settings of all hubs of tests. No load balancer still sends requests to a pod that stops.
		ArgsOf: map[string][]string{deploy.APIServer: {"--embedded-etcd-unsafe-no-fsync", "--shutdown-delay-duration=0s"}}}
	for _, change := range changes {
		change(&node)
	}
	return &Management{Instance: cluster, Node: kubelet.Start(t, node), Audit: audit}
}

// InstallOperator deploys hub-operator without kubectl hub.
func (m *Management) InstallOperator(t testing.TB) {
	t.Helper()
	m.must(t, "", "apply", "--server-side", "-k", Overlay("operator"))
}

// must runs kubectl and fails the test if kubectl fails.
func (m *Management) must(t testing.TB, stdin string, args ...string) {
	t.Helper()
	cmd := m.Kubectl(t.Context(), args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// wait waits until an object of the management cluster meets a condition.
func (m *Management) wait(t testing.TB, what string, args ...string) {
	t.Helper()
	if out, err := m.Kubectl(t.Context(), append([]string{"wait", "--timeout=" + Timeout.String(), "--for=" + what}, args...)...).CombinedOutput(); err != nil {
		there, _ := m.Kubectl(context.WithoutCancel(t.Context()), append([]string{"get", "-o", "yaml"}, args...)...).CombinedOutput()
		t.Fatalf("%s of %s: %v: %s%s", what, strings.Join(args, " "), err, out, there)
	}
}

// ServerNamespace returns the namespace of the servers of a detached hub.
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

// MakeHub turns a plain cluster into a hub by a ClusterManager in mode Detached, and waits until it serves. The servers are pods of the management
// cluster, and the cluster's kube-apiserver reaches them by the name of their Service: it has the flags of Node.Egress. The ports of this machine
// that the cluster has for its hub-apiservers are forwarded to the running one, so that tests reach it as they reach that of a local hub.
func (m *Management) MakeHub(t testing.TB, name string, cluster *localhub.Instance, components ...string) {
	t.Helper()
	m.OpenWays(t, name, cluster)
	m.BeginHub(t, name, cluster, components...)
	m.AwaitHub(t, name, cluster)
}

// OpenWays allows the pods of a future hub to reach the cluster, and this machine to reach the pods.
func (m *Management) OpenWays(t testing.TB, name string, cluster *localhub.Instance) {
	t.Helper()
	if err := m.Node.Reach(strings.TrimPrefix(cluster.AdminConfig().Host, "https://")); err != nil {
		t.Fatal(err)
	}
	for _, address := range cluster.HubAPIServerAddresses() {
		m.Node.ForwardFrom(address, ServerNamespace(name), deploy.APIServer, 443)
	}
}

// BeginHub creates the ClusterManager, from which hub-operator installs the hub.
func (m *Management) BeginHub(t testing.TB, name string, cluster *localhub.Instance, components ...string) {
	t.Helper()
	const definition = "crd/clustermanagers.operator.open-cluster-management.io"
	m.wait(t, "create", definition)
	m.wait(t, "condition=Established", definition)
	m.must(t, fmt.Sprintf(clusterManager, name, strings.Join(components, ", ")), "apply", "-f", "-")
	// The condition reports that a Secret is missing. Its namespace exists.
	m.wait(t, "condition=ReadyToApply=false", "clustermanager/"+name)
	m.must(t, "", "create", "secret", "generic", "external-hub-kubeconfig", "-n", ServerNamespace(name), "--from-file=kubeconfig="+cluster.AdminKubeconfig())
	m.wait(t, "condition=ReadyToApply", "clustermanager/"+name)
}

// AwaitHub waits until the hub serves.
func (m *Management) AwaitHub(t testing.TB, name string, cluster *localhub.Instance) {
	t.Helper()
	m.wait(t, "condition=Available", "clustermanager/"+name)
	m.wait(t, "condition=Available", "-n", ServerNamespace(name), "deployment", "--all")
	if err := cluster.AwaitServed(t.Context()); err != nil {
		t.Fatal(err)
	}
}
