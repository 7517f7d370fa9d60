// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestKubectlHub_PrintsErrorsOfHub runs commands that only a real hub refuses: one line states each refusal and the remedy. The unit tests of
// pkg/cli cover other mistakes.
func TestKubectlHub_PrintsErrorsOfHub(t *testing.T) {
	p := harness.Plugin{Kubeconfig: harness.WithContexts(t, map[string]*localhub.Instance{"hub": harness.Hub(t)})}
	j := p.Joining(t, "init", "--context", "hub")
	// The account default is not usable, as kube-controller-manager creates it at an unknown time.
	accounts := harness.Kube(t, harness.Hub(t).AdminConfig()).CoreV1().ServiceAccounts(harness.NewNamespace(t))
	harness.Must(accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "weak"}}, metav1.CreateOptions{}))(t)
	weak := harness.Must(accounts.CreateToken(t.Context(), "weak", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t).Status.Token
	stranger := harness.Unique("asked-by-a-stranger")
	harness.NewManagedCluster(t, stranger, nil)
	askFor(t, stranger)
	join := func(token string) []string {
		args := j.Args(t, "c1")
		args[slices.Index(args, "--hub-token")+1] = token
		return append(args, "--context", "hub")
	}
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"no rights":              {[]string{"get", "clusters", "--as", "eve", "--context", "hub"}, []string{`User "eve" cannot list resource "managedclusters"`}},
		"no right to a label":    {[]string{"label", stranger, "a=b", "--as", "eve", "--context", "hub"}, []string{`User "eve" cannot get resource "managedclusters"`}},
		"members of no set":      {[]string{"members", "ghost", "--context", "hub"}, []string{`"ghost" not found`}},
		"a wrong token":          {join("secret-token"), []string{"does not accept the credentials (401)", "kubectl hub get token"}},
		"a token without rights": {join(weak), []string{"the token may not make managed cluster c1 on the hub", "cannot create"}},
		"accept a stranger's":    {[]string{"accept", "--clusters", stranger, "--context", "hub"}, []string{`comes from "eve"`, "--requesters=eve"}},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := p.Run(t, test.args...)
			if err == nil {
				t.Fatalf("it did it: %s%s", stdout, stderr)
			}
			if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "Error: ") || stdout != "" {
				t.Errorf("not one line:\n%s%s", stdout, stderr)
			}
			harness.Contains(t, stderr, test.want...)
			for _, secret := range []string{j.Token, weak, "secret-token"} {
				if strings.Contains(stderr, secret) {
					t.Error("a token is printed")
				}
			}
		})
	}
	// The same user is accepted as an expected requester.
	out, stderr, err := p.Run(t, "accept", "--clusters", stranger, "--requesters", "eve", "--context", "hub", "-o", "json")
	if err != nil || !strings.Contains(stderr, "comes from eve, so the hub leaves it to you") || !strings.Contains(out, `"eve"`) {
		t.Errorf("accept --requesters: %v: %s%s", err, out, stderr)
	}
}

// askFor requests the certificate of a cluster as eve.
func askFor(t *testing.T, cluster string) {
	t.Helper()
	eve := harness.Kube(t, harness.Hub(t).UserConfig("eve", "system:masters"))
	key := harness.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	csr := harness.Must(cert.MakeCSRFromTemplate(key, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName:   registration.ClusterUser(cluster, "eve"),
		Organization: []string{registration.ClusterGroup(cluster), registration.ManagedClustersGroup},
	}}))(t)
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: cluster + "-", Labels: map[string]string{registration.ClusterNameLabel: cluster}},
		Spec: certificatesv1.CertificateSigningRequestSpec{Request: csr, SignerName: registration.SignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}},
	}
	harness.Must(eve.CertificatesV1().CertificateSigningRequests().Create(t.Context(), request, metav1.CreateOptions{}))(t)
}
