// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

func newRequest(t *testing.T, cluster, user string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName: registration.ClusterUser(cluster, "agent"), Organization: []string{registration.ClusterGroup(cluster), registration.ManagedClustersGroup},
	}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: cluster + "-1", Labels: map[string]string{registration.ClusterNameLabel: cluster}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: registration.SignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}, Username: user,
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		},
	}
}

// A cluster is accepted by the requester of its certificate, not by its creator, who is not known.
func TestAutoApproves_ByCertificateRequester(t *testing.T) {
	const joiner = "joiner"
	for name, test := range map[string]struct {
		request    func(*testing.T) *certificatesv1.CertificateSigningRequest
		annotation func(key string) string
		requesters string
		identities []string
		want       bool
	}{
		"a user who is named":    {identities: []string{joiner}, want: true},
		"nobody is named":        {},
		"somebody else is":       {identities: []string{"join", "joiner2"}},
		"with the cluster's key": {identities: []string{joiner}, annotation: func(key string) string { return key }, want: true},
		// Another user created the cluster in the place of the requester.
		"with another key":                 {identities: []string{joiner}, annotation: func(string) string { return "00" }},
		"beside requesters that are named": {identities: []string{joiner}, requesters: "system:bootstrap:abcdef"},
		"as one of them":                   {identities: []string{joiner}, requesters: "system:bootstrap:abcdef,joiner", want: true},
		"for another cluster": {
			identities: []string{joiner},
			request: func(t *testing.T) *certificatesv1.CertificateSigningRequest {
				csr := newRequest(t, "c2", joiner)
				csr.Labels[registration.ClusterNameLabel] = "c1"
				return csr
			},
		},
		"with a request that is denied": {
			identities: []string{joiner},
			request: func(t *testing.T) *certificatesv1.CertificateSigningRequest {
				csr := newRequest(t, "c1", joiner)
				csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}
				return csr
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			csr := newRequest(t, "c1", joiner)
			if test.request != nil {
				csr = test.request(t)
			}
			cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
			if test.annotation != nil {
				parsed, err := agentcsr.Parse(csr)
				if err != nil {
					t.Fatal(err)
				}
				cluster.Annotations = map[string]string{registration.AnnotationAgentKey: test.annotation(parsed.KeySHA256)}
			}
			if test.requesters != "" {
				cluster.Annotations = map[string]string{registration.AnnotationRequesters: test.requesters}
			}
			scheme := runtime.NewScheme()
			if err := certificatesv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(client.Object(csr)).Build()
			if got := New(c, test.identities).AutoApproves(cluster); got != test.want {
				t.Errorf("approves: %t, want %t", got, test.want)
			}
		})
	}
}

func TestHandles_ClustersWithoutOtherDriver(t *testing.T) {
	for annotation, want := range map[string]bool{
		"agent.open-cluster-management.io/managed-cluster-arn": false, "eks-managed-cluster-arn": false, "other": true,
	} {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotation: "arn"}}}
		if got := New(nil, nil).Handles(cluster); got != want {
			t.Errorf("%s: %t, want %t", annotation, got, want)
		}
	}
}
