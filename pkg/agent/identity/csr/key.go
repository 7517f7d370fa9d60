// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// newKey returns a new private key, PEM.
func newKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a private key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("generating a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyutil.ECPrivateKeyBlockType, Bytes: der}), nil
}

// parseKey parses a private key of the secret. Its errors do not contain the key.
func parseKey(key []byte) (crypto.Signer, error) {
	parsed, err := keyutil.ParsePrivateKeyPEM(key)
	if err != nil {
		return nil, errors.New("the secret has a private key that cannot be read")
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the secret has a private key of a kind that cannot sign: %T", parsed)
	}
	return signer, nil
}

// keyHash returns the hash of the public key, as in registration.AnnotationAgentKey.
func keyHash(key []byte) (string, error) {
	signer, err := parseKey(key)
	if err != nil {
		return "", err
	}
	der, err := publicDER(signer)
	if err != nil {
		return "", err
	}
	return agentcsr.KeySHA256(der), nil
}

func publicDER(signer crypto.Signer) ([]byte, error) {
	return x509.MarshalPKIXPublicKey(signer.Public())
}

// newRequest returns the certificate request of an agent, PEM.
func newRequest(key []byte, cluster, agent string) ([]byte, error) {
	signer, err := parseKey(key)
	if err != nil {
		return nil, err
	}
	return agentcsr.PEM(signer, cluster, agent)
}

// requestsKey reports whether a certificate request is for a key.
func requestsKey(request, key []byte) bool {
	block, _ := pem.Decode(request)
	if block == nil {
		return false
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return false
	}
	signer, err := parseKey(key)
	if err != nil {
		return false
	}
	return sameKey(parsed.RawSubjectPublicKeyInfo, signer)
}

// parseCert parses the certificate of an agent, and checks that its user is this agent and that it belongs to the key.
func parseCert(certificate, key []byte, cluster, agent string) (*x509.Certificate, error) {
	if len(certificate) == 0 {
		return nil, errors.New("there is no certificate")
	}
	parsed, err := cert.ParseCertsPEM(certificate)
	if err != nil {
		return nil, fmt.Errorf("the certificate cannot be read: %w", err)
	}
	leaf := parsed[0]
	if want := registration.ClusterUser(cluster, agent); leaf.Subject.CommonName != want {
		return nil, fmt.Errorf("the certificate is for %q, not for %q", leaf.Subject.CommonName, want)
	}
	signer, err := parseKey(key)
	if err != nil {
		return nil, err
	}
	if !sameKey(leaf.RawSubjectPublicKeyInfo, signer) {
		return nil, errors.New("the certificate belongs to another private key")
	}
	// TLS parses PEM in its own way, and may find a different certificate first.
	if pair, err := tls.X509KeyPair(certificate, key); err != nil || !pair.Leaf.Equal(leaf) {
		return nil, errors.New("TLS cannot use the certificate and its private key: there are other PEM blocks with them")
	}
	return leaf, nil
}

func sameKey(der []byte, signer crypto.Signer) bool {
	own, err := publicDER(signer)
	return err == nil && bytes.Equal(der, own)
}
