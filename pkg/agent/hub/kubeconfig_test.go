// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func TestKubeconfig_InlinesCertificateAuthorityFile(t *testing.T) {
	dir := t.TempDir()
	config := agenttest.BootstrapKubeconfig()
	config.Clusters["hub"].CertificateAuthorityData = nil
	config.Clusters["hub"].CertificateAuthority = "ca.pem"
	config.Clusters["other"] = config.Clusters["hub"]
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	source := &hub.Bootstrap{File: path}
	if _, err := source.Read(t.Context()); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("without the file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), []byte("the ca"), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := source.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	made, err := hub.Kubeconfig(read, "c1", &clientcmdapi.AuthInfo{ClientCertificate: "tls.crt"})
	if err != nil {
		t.Fatal(err)
	}
	cluster := agenttest.LoadKubeconfig(t, made).Clusters["default-cluster"]
	if string(cluster.CertificateAuthorityData) != "the ca" || cluster.CertificateAuthority != "" || len(read.Clusters) != 1 {
		t.Errorf("the hub is %+v", cluster)
	}
}

func TestKubeconfig_MissingCertificateAuthorityIsVerified(t *testing.T) {
	config := agenttest.BootstrapKubeconfig()
	config.Clusters["hub"].CertificateAuthorityData = nil
	made, err := hub.Kubeconfig(config, "c1", &clientcmdapi.AuthInfo{ClientCertificate: "tls.crt"})
	if err != nil {
		t.Fatal(err)
	}
	if agenttest.LoadKubeconfig(t, made).Clusters["default-cluster"].InsecureSkipTLSVerify {
		t.Error("it is insecure")
	}
}

func TestBootstrap_ErrorsAreOneLineWithoutSecrets(t *testing.T) {
	const token = "s3cret-token"
	empty := agenttest.BootstrapKubeconfig()
	empty.CurrentContext = "none"
	noContext, err := clientcmd.Write(*empty)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]map[string][]byte{
		"no key":       {"other": nil},
		"no YAML":      {registration.KeyKubeconfig: []byte("users:\n\t" + token)},
		"wrong fields": {registration.KeyKubeconfig: []byte("users: " + token)},
		"no context":   {registration.KeyKubeconfig: noContext},
		"nothing":      {registration.KeyKubeconfig: []byte("apiVersion: v1\nkind: Config\n")},
	} {
		t.Run(name, func(t *testing.T) {
			w := agenttest.NewWorld(t)
			if err := w.Spoke.Tracker().Add(&corev1.Secret{Data: data,
				ObjectMeta: metav1.ObjectMeta{Namespace: agenttest.Namespace, Name: registration.BootstrapSecret}}); err != nil {
				t.Fatal(err)
			}
			_, err := (&hub.Bootstrap{Client: w.Spoke, Namespace: agenttest.Namespace}).Read(t.Context())
			if err == nil || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), token) {
				t.Errorf("got %v", err)
			}
		})
	}
}
