// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/servingcert"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestDoors_CertificatesAreForOnePort tries every certificate of a hub, and a new certificate of an agent, at every port of the hub. An etcd that
// accepts agents' certificates would make each agent cluster-admin.
func TestDoors_CertificatesAreForOnePort(t *testing.T) {
	people := []string{"an agent", "pki/admin", "pki/client-ca", "pki/csr-signer", "pki/hub-apiserver", "pki/hub-certificate-approver", "pki/hub-controller-manager", "pki/kube-controller-manager"}
	tryDoors(t, harness.Hub(t), map[string][]string{
		"etcd":                    {"pki/etcd-client", "pki/etcd-client-ca"},
		"etcd/peer":               {"pki/etcd-peer"},
		"hub-etcd":                {"pki/hub-etcd-client", "pki/hub-etcd-client-ca"},
		"hub-etcd/peer":           {"pki/hub-etcd-peer"},
		"kube-apiserver":          people,
		"kube-controller-manager": people,
		"hub-apiserver":           people,
		"hub-apiserver-1":         people,
	})
}

// TestDoors_HubWithSingleCA does the same with a hub of an earlier version, which had one CA for everything, and with the other kinds of etcd:
// hub-apiserver's own, and that of a cluster provider.
func TestDoors_HubWithSingleCA(t *testing.T) {
	agent := pkix.Name{CommonName: registration.ClusterUser("berlin-1", "old"), Organization: []string{registration.ManagedClustersGroup}}
	h := harness.OwnHub(t, func(c *localhub.Options) {
		was := localserver.Certificates{Dir: filepath.Join(c.Dir, "pki")}
		ca := harness.Must(was.Authority("ca", "clusterhub-local-ca"))(t)
		for name, sign := range map[string]func(string) error{
			"etcd": func(name string) error { return ca.Peer(name, "etcd") }, "old-etcd": func(name string) error { return ca.Peer(name, "etcd") },
			"admin":     func(name string) error { return ca.Client(name, pkix.Name{CommonName: "admin"}) },
			"old-agent": func(name string) error { return ca.Client(name, agent) },
		} {
			if err := sign(name); err != nil {
				t.Fatal(err)
			}
		}
		c.HubControllerManagerArgs = []string{"--registration-drivers="}
	})
	l := harness.StartLocalClusters(t, h)
	l.AwaitCluster(t, "blue", "Ready")
	blue := harness.Must(filepath.Rel(h.Dir(), l.Folder(t, "blue")))(t)
	const provider = "cluster-provider/etcd/pki/"
	people := []string{"an agent", "pki/admin", "pki/client-ca", "pki/cluster-provider", "pki/csr-signer", "pki/hub-apiserver",
		"pki/hub-certificate-approver", "pki/hub-controller-manager", "pki/kube-controller-manager", "pki/ca", "pki/old-agent", "pki/old-etcd"}
	tryDoors(t, h, map[string][]string{
		"etcd":                       {"pki/etcd-client", "pki/etcd-client-ca"},
		"etcd/peer":                  {"pki/etcd-peer"},
		"kube-apiserver":             people,
		"kube-controller-manager":    people,
		"hub-apiserver":              people,
		"hub-apiserver/embedded":     {"hub-apiserver/pki/client"},
		"cluster-provider/etcd":      {provider + "client", provider + "client-ca"},
		"cluster-provider/etcd/peer": {provider + "peer"},
		blue:                         {blue + "/pki/admin", blue + "/pki/client-ca", blue + "/pki/kube-controller-manager"},
	})
}

// tryDoors tries all certificates at all doors of a hub. opened lists the doors of each certificate; the certificate of the front proxy opens the
// doors that trust the front's headers, as the user in these headers.
func tryDoors(t *testing.T, h *localhub.Instance, opened map[string][]string) {
	t.Helper()
	keys := credentials(t, h.Dir())
	keys["an agent"] = freshAgent(t, h)
	secrets := harness.Kube(t, h.AdminConfig()).CoreV1().Secrets("clusterhub-system")
	ca := harness.Must(secrets.Get(t.Context(), servingcert.SecretName, metav1.GetOptions{}))(t)
	pair := harness.Must(tls.X509KeyPair(ca.Data[corev1.TLSCertKey], ca.Data[corev1.TLSPrivateKeyKey]))(t)
	keys["the CA of hub-apiserver"] = &pair
	doors := listening(t, h)
	found := map[string]bool{}
	for _, d := range doors {
		found[d.name] = true
		if who := d.enter(t, nil); who != "" {
			t.Errorf("%s lets in whoever has no certificate, as %q", d.name, who)
		}
		var by []string
		for _, name := range slices.Sorted(maps.Keys(keys)) {
			pair := keys[name]
			who := d.enter(t, pair)
			switch subject := pair.Leaf.Subject; {
			case who == "":
				continue
			case name == "pki/front-proxy" || name == "pki/front-proxy-ca":
				if takes := []string{"kube-apiserver", "kube-controller-manager"}; !slices.Contains(takes, d.name) && !strings.HasPrefix(d.name, "hub-apiserver") {
					t.Errorf("%s takes the word of %s", d.name, name)
				}
				continue
			case d.api && who != subject.CommonName && (who != "system:masters" || !slices.Contains(subject.Organization, who)):
				t.Errorf("%s takes %s, which is %s, for %s", d.name, name, subject, who)
			}
			by = append(by, name)
		}
		want := slices.Sorted(slices.Values(opened[d.name]))
		if !slices.Equal(by, want) {
			t.Errorf("%s (%s) is opened\nby   %q,\nwant %q", d.name, d.address, by, want)
		}
	}
	for name := range opened {
		if !found[name] {
			t.Errorf("nothing listens at %s; there are %q", name, slices.Sorted(maps.Keys(found)))
		}
	}
}

// credentials returns all pairs of a certificate and a key in a directory.
func credentials(t *testing.T, dir string) map[string]*tls.Certificate {
	t.Helper()
	all := map[string]*tls.Certificate{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".crt" {
			return nil // a deleted file is not one of these
		}
		key := strings.TrimSuffix(path, ".crt") + ".key"
		if pair, err := tls.LoadX509KeyPair(path, key); err == nil {
			name := harness.Must(filepath.Rel(dir, strings.TrimSuffix(path, ".crt")))(t)
			all[name] = &pair
		}
		return nil
	})
	if err != nil || len(all) < 10 {
		t.Fatalf("in %s are the certificates %q: %v", dir, slices.Sorted(maps.Keys(all)), err)
	}
	return all
}

// freshAgent returns the certificate of an agent that was accepted.
func freshAgent(t *testing.T, h *localhub.Instance) *tls.Certificate {
	t.Helper()
	key := harness.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	subject := pkix.Name{CommonName: registration.ClusterUser("newcomer", "agent"), Organization: []string{registration.ManagedClustersGroup}}
	csrs := harness.Kube(t, h.AdminConfig()).CertificatesV1().CertificateSigningRequests()
	csr := harness.Must(csrs.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "newcomer-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: registration.SignerName,
			Usages:  []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			Request: harness.Must(cert.MakeCSRFromTemplate(key, &x509.CertificateRequest{Subject: subject}))(t)},
	}, metav1.CreateOptions{}))(t)
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
	harness.Must(csrs.UpdateApproval(t.Context(), csr.Name, csr, metav1.UpdateOptions{}))(t)
	harness.Eventually(t, "the certificate is signed", func(ctx context.Context) (ok bool, err error) {
		csr, err = csrs.Get(ctx, csr.Name, metav1.GetOptions{})
		return err == nil && len(csr.Status.Certificate) > 0, err
	})
	private := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: harness.Must(x509.MarshalECPrivateKey(key))(t)})
	pair := harness.Must(tls.X509KeyPair(bytes.TrimSpace(csr.Status.Certificate), private))(t)
	return &pair
}
