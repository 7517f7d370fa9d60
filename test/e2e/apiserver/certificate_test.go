// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// served returns how many groups and versions hub-apiserver has according to its manifest.
func served(t *testing.T) int {
	t.Helper()
	manifest := harness.Must(os.ReadFile(filepath.Join(harness.Overlay("base"), "apiservices.yaml")))(t)
	return bytes.Count(manifest, []byte("kind: APIService\n"))
}

func TestCertificate_IsAlwaysVerified(t *testing.T) {
	client := harness.Must(aggregatorclient.NewForConfig(harness.Hub(t).AdminConfig()))(t)
	list := harness.Must(client.ApiregistrationV1().APIServices().List(t.Context(), metav1.ListOptions{}))(t)
	ours := 0
	for _, s := range list.Items {
		if s.Spec.Service == nil {
			continue
		}
		ours++
		if s.Spec.InsecureSkipTLSVerify || len(s.Spec.CABundle) == 0 {
			t.Errorf("%s: insecureSkipTLSVerify is %t, the CA has %d bytes", s.Name, s.Spec.InsecureSkipTLSVerify, len(s.Spec.CABundle))
		}
	}
	if want := served(t); ours != want || want == 0 {
		t.Errorf("%d APIServices are ours, want %d", ours, want)
	}
	for _, s := range list.Items {
		if s.Name != "v1alpha1.view.clusterhub.dev" {
			continue
		}
		was := s.Spec.CABundle
		s.Spec.CABundle = harness.Must(os.ReadFile(filepath.Join(harness.Hub(t).Dir(), "pki", "ca.crt")))(t) // a different CA
		harness.Must(client.ApiregistrationV1().APIServices().Update(t.Context(), &s, metav1.UpdateOptions{}))(t)
		harness.Eventually(t, "the CA is put right", func(ctx context.Context) (bool, error) {
			now, err := client.ApiregistrationV1().APIServices().Get(ctx, s.Name, metav1.GetOptions{})
			return err == nil && string(now.Spec.CABundle) == string(was), err
		})
	}
}

// provided returns the self-signed certificate that an operator provides to hub-apiserver for its Service.
func provided(t *testing.T) (ca []byte, certFile, keyFile string) {
	t.Helper()
	key := harness.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the operator's"}, DNSNames: []string{"hub-apiserver.clusterhub-system.svc"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	certificate := harness.Must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	private := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: harness.Must(x509.MarshalECPrivateKey(key))(t)})
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for file, data := range map[string][]byte{certFile: ca, keyFile: private} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return ca, certFile, keyFile
}

// TestCertificate_ProvidedCertificateIsUsed verifies that the front trusts the CA that the operator has written into the APIServices, and
// that no controller changes it.
func TestCertificate_ProvidedCertificateIsUsed(t *testing.T) {
	h := harness.LendHub(t)
	client := harness.Must(aggregatorclient.NewForConfig(h.AdminConfig()))(t).ApiregistrationV1().APIServices()
	registered := func() (found []apiregistrationv1.APIService) {
		for _, s := range harness.Must(client.List(t.Context(), metav1.ListOptions{}))(t).Items {
			if s.Spec.Service != nil {
				found = append(found, s)
			}
		}
		return found
	}
	h.StopHubAPIServer(0) // it would restore its own CA
	ca, certFile, keyFile := provided(t)
	patch := harness.Must(json.Marshal(map[string]any{"spec": map[string]any{"caBundle": ca}}))(t)
	for _, s := range registered() {
		harness.Must(client.Patch(t.Context(), s.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "operator"}))(t)
	}
	h = harness.Relaunch(t, h, func(c *localhub.Options) {
		c.HubAPIServerArgs = []string{"--tls-cert-file=" + certFile, "--tls-private-key-file=" + keyFile}
	})
	harness.Must(harness.Ours(t, h.AdminConfig()).ClusterV1().ManagedClusters().Create(t.Context(), harness.ManagedCluster("a", nil), metav1.CreateOptions{}))(t)
	services := registered()
	for _, s := range services {
		if !bytes.Equal(s.Spec.CABundle, ca) {
			t.Errorf("the caBundle of %s has become\n%s", s.Name, s.Spec.CABundle)
		}
	}
	if want := served(t); len(services) != want {
		t.Errorf("%d APIServices are ours, want %d", len(services), want)
	}
}
