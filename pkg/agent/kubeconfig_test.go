// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

func TestKubeconfig_HasTheHubOfTheBootstrapKubeconfigAndTheFilesOfTheSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		stop()
		s := w.secret()
		config := loadKubeconfig(t, s.kubeconfig)
		current := config.Contexts[config.CurrentContext]
		if current == nil || current.Namespace != clusterName {
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
		if strings.Contains(string(s.kubeconfig), "boot\n") {
			t.Error("it has the bootstrap token")
		}

		// Mounted, the secret is a kubeconfig that works as it is.
		dir := t.TempDir()
		for name, data := range map[string][]byte{"kubeconfig": s.kubeconfig, "tls.crt": s.cert, "tls.key": s.key} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig")); err != nil {
			t.Errorf("it cannot be used from files: %v", err)
		}
	})
}

func TestKubeconfig_AFileOfTheCertificateAuthorityIsTakenIn(t *testing.T) {
	dir := t.TempDir()
	config := bootstrapKubeconfig()
	config.Clusters["hub"].CertificateAuthorityData = nil
	config.Clusters["hub"].CertificateAuthority = "ca.pem"
	config.Clusters["other"] = config.Clusters["hub"]
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	source := &bootstrapSource{file: path}
	if _, err := source.read(t.Context()); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("without the file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), []byte("the ca"), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := source.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	made, err := hubKubeconfig(read, "c1", (&csrIdentity{}).user())
	if err != nil {
		t.Fatal(err)
	}
	cluster := loadKubeconfig(t, made).Clusters[kubeconfigCluster]
	if string(cluster.CertificateAuthorityData) != "the ca" || cluster.CertificateAuthority != "" || len(read.Clusters) != 1 {
		t.Errorf("the hub is %+v", cluster)
	}
}

func TestKubeconfig_NoCertificateAuthorityIsNotTurnedIntoNoTrustCheck(t *testing.T) {
	config := bootstrapKubeconfig()
	config.Clusters["hub"].CertificateAuthorityData = nil
	made, err := hubKubeconfig(config, "c1", (&csrIdentity{}).user())
	if err != nil {
		t.Fatal(err)
	}
	if loadKubeconfig(t, made).Clusters[kubeconfigCluster].InsecureSkipTLSVerify {
		t.Error("it is insecure")
	}
}

func TestBootstrap_EveryMistakeIsOneLineThatDoesNotQuoteTheSecret(t *testing.T) {
	const token = "s3cret-token"
	empty := bootstrapKubeconfig()
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
			w := newWorld(t)
			if err := w.spoke.Tracker().Add(&corev1.Secret{Data: data,
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: registration.BootstrapSecret}}); err != nil {
				t.Fatal(err)
			}
			_, err := (&bootstrapSource{client: w.spoke, namespace: namespace}).read(t.Context())
			if err == nil || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), token) {
				t.Errorf("got %v", err)
			}
		})
	}
}
