// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agentcsr

import (
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Subject returns the subject of the certificate of a cluster's agent.
func Subject(cluster, agent string) pkix.Name {
	return pkix.Name{CommonName: registration.ClusterUser(cluster, agent), Organization: agentGroups(cluster)}
}

// PEM returns the request that an agent signs with its key, for spec.request.
func PEM(key crypto.Signer, cluster, agent string) ([]byte, error) {
	return cert.MakeCSRFromTemplate(key, &x509.CertificateRequest{Subject: Subject(cluster, agent)})
}

// New returns a request that Parse accepts, with a result of PEM. The API server generates its name.
func New(cluster string, request []byte) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: cluster + "-",
			Labels:       map[string]string{registration.ClusterNameLabel: cluster},
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    request,
			SignerName: registration.SignerName,
			// An ECDSA key cannot be used for encryption.
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
}
