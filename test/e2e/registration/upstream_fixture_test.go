// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// accountKubeconfig returns a kubeconfig of a ServiceAccount.
func accountKubeconfig(t *testing.T, h *localhub.Instance, namespace, account string) string {
	t.Helper()
	config := h.AdminConfig()
	token := harness.Must(harness.Kube(t, config).CoreV1().ServiceAccounts(namespace).
		CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t)
	kubeconfig := filepath.Join(t.TempDir(), account+".kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"own": {Server: config.Host, CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"account": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"own": {Cluster: "own", AuthInfo: "account", Namespace: namespace}},
		CurrentContext: "own",
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// startUpstream starts a program of Open Cluster Management.
func startUpstream(t *testing.T, program, command, kubeconfig, namespace string, args ...string) *harness.Daemon {
	t.Helper()
	return harness.StartDaemon(t, harness.Binary(t, program), append([]string{command, "--kubeconfig=" + kubeconfig, "--namespace=" + namespace,
		"--config=" + filepath.Join("testdata", "upstream-config.yaml"), fmt.Sprintf("--listen=127.0.0.1:%d", harness.FreePort(t)),
		"--disable-leader-election"}, args...)...)
}

// upstreamPlacement starts Open Cluster Management's placement controller.
func (d *delivery) upstreamPlacement() *harness.Daemon {
	d.Helper()
	const namespace = "open-cluster-management-hub"
	d.on("apply", "-f", filepath.Join("testdata", "upstream-placement.yaml"))
	return startUpstream(d.T, "upstream-placement", "controller", accountKubeconfig(d.T, d.hub, namespace, "placement"), namespace)
}

// upstreamReplicaSets starts Open Cluster Management's controller of replica sets, on a hub that has the namespace of upstreamPlacement.
func (d *delivery) upstreamReplicaSets() *harness.Daemon {
	d.Helper()
	const namespace = "open-cluster-management-hub"
	d.on("apply", "-f", filepath.Join("testdata", "upstream-replicasets.yaml"))
	return startUpstream(d.T, "upstream-work", "manager", accountKubeconfig(d.T, d.hub, namespace, "work"), namespace, "--feature-gates=ManifestWorkReplicaSet=true")
}

// upstreamWork starts Open Cluster Management's work agent with the cluster's identity on the hub.
func (m *managed) upstreamWork(t *testing.T) *harness.Daemon {
	t.Helper()
	harness.MustKubectlOf(t, m.Instance, "", "apply", "-f", filepath.Join("testdata", "upstream-work.yaml"))
	identity := t.TempDir()
	for key, value := range m.secret(t).Data {
		if err := os.WriteFile(filepath.Join(identity, key), value, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return startUpstream(t, "upstream-work", "agent", accountKubeconfig(t, m.Instance, registration.AgentNamespace, "klusterlet-work-sa"), registration.AgentNamespace,
		"--spoke-cluster-name="+m.name, "--hub-kubeconfig-dir="+identity, "--workload-source-config="+filepath.Join(identity, registration.KeyKubeconfig), "--status-sync-interval=1s")
}
