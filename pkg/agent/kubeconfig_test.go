// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
)

func TestKubeconfig_RefersToHubAndSecretFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		stop()
		s := w.State()
		config := agenttest.LoadKubeconfig(t, s.Kubeconfig)
		current := config.Contexts[config.CurrentContext]
		if current == nil || current.Namespace != agenttest.ClusterName {
			t.Fatalf("the current context is %+v", current)
		}
		cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
		if cluster.Server != "https://hub:6443" || string(cluster.CertificateAuthorityData) != "ca" ||
			cluster.ProxyURL != "http://proxy:3128" || cluster.TLSServerName != "hub.example" || cluster.InsecureSkipTLSVerify {
			t.Errorf("the hub is %+v", cluster)
		}
		if user.ClientCertificate != "tls.crt" || user.ClientKey != "tls.key" || user.Token != "" {
			t.Errorf("the user is %s", user)
		}
		if strings.Contains(string(s.Kubeconfig), "boot\n") {
			t.Error("it has the bootstrap token")
		}

		// If the secret is mounted, its kubeconfig works as it is.
		dir := t.TempDir()
		for name, data := range map[string][]byte{"kubeconfig": s.Kubeconfig, "tls.crt": s.Cert, "tls.key": s.Key} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig")); err != nil {
			t.Errorf("it cannot be used from files: %v", err)
		}
	})
}
