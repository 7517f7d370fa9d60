// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agentcsr

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// FuzzParse verifies that an accepted request is for an agent of the cluster that the label names, and for nothing else.
func FuzzParse(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	for _, template := range []x509.CertificateRequest{
		{Subject: pkix.Name{CommonName: registration.ClusterUser("c1", "agent"), Organization: []string{registration.ClusterGroup("c1"), registration.ManagedClustersGroup}}},
		{Subject: pkix.Name{CommonName: registration.ClusterUser("c2", "agent"), Organization: []string{registration.ClusterGroup("c2"), registration.ManagedClustersGroup}}},
		{Subject: pkix.Name{CommonName: registration.ClusterUser("c1", "agent"),
			Organization: []string{registration.ClusterGroup("c1"), registration.ManagedClustersGroup, "system:masters"}}},
		{Subject: pkix.Name{CommonName: "system:admin", Organization: []string{"system:masters"}}, DNSNames: []string{"kubernetes"}},
	} {
		der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
		if err != nil {
			f.Fatal(err)
		}
		request := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
		f.Add("c1", "client auth", request)
		f.Add("c1", "server auth", request)
		f.Add("c1", "client auth", append(slices.Clone(request), request...))
	}
	f.Add("", "", []byte("-----BEGIN"))
	f.Add("c1:x", "client auth", []byte{})
	f.Fuzz(func(t *testing.T, cluster, usage string, data []byte) {
		csr := &certificatesv1.CertificateSigningRequest{}
		csr.Labels = map[string]string{registration.ClusterNameLabel: cluster}
		csr.Spec = certificatesv1.CertificateSigningRequestSpec{
			SignerName: registration.SignerName, Request: data, Usages: []certificatesv1.KeyUsage{certificatesv1.KeyUsage(usage)},
		}
		request, err := Parse(csr)
		if err != nil {
			return
		}
		block, _ := pem.Decode(data)
		signed, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		groups := slices.Sorted(slices.Values(signed.Subject.Organization))
		want := slices.Sorted(slices.Values([]string{registration.ClusterGroup(cluster), registration.ManagedClustersGroup}))
		agent, ours := strings.CutPrefix(signed.Subject.CommonName, registration.ClusterUser(cluster, ""))
		if !slices.Equal(groups, want) || !ours || agent == "" || strings.Contains(agent, ":") || request.User != signed.Subject.CommonName ||
			request.Cluster != cluster || usage != "client auth" || len(signed.DNSNames)+len(signed.IPAddresses) > 0 || registration.CheckName(cluster) != nil {
			t.Errorf("%q for %q: %+v is approved as %+v", usage, cluster, signed.Subject, request)
		}
	})
}

// FuzzPlannedKey verifies that the annotation of a cluster results in one key, in one spelling, or in one that no agent can have.
func FuzzPlannedKey(f *testing.F) {
	sum := sha256.Sum256([]byte("a"))
	key := hex.EncodeToString(sum[:])
	for _, text := range []string{key, strings.ToUpper(key), key[:62], key + "00", " " + key, "", registration.UndecidedKey, strings.Replace(key, "c", "ç", 1), "K" + key[1:]} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		planned := PlannedKey(map[string]string{registration.AnnotationAgentKey: text})
		if planned == "" && text != "" || text == "" && planned != "" {
			t.Errorf("%q pins %q", text, planned)
		}
		if planned == "" || planned == registration.UndecidedKey {
			return
		}
		if bytes, err := hex.DecodeString(planned); err != nil || len(bytes) != sha256.Size || planned != hex.EncodeToString(bytes) {
			t.Errorf("%q pins %q, which is no hash as the hub writes it", text, planned)
		}
		if !strings.EqualFold(planned, text) || PlannedKey(map[string]string{registration.AnnotationAgentKey: planned}) != planned {
			t.Errorf("%q pins another key, %q", text, planned)
		}
	})
}
