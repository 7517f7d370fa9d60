// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const fuzzedToken = "hunter2-hunter2-hunter2"

// FuzzParseCert: TLS accepts each certificate and key that parseCert accepts, and the certificate is the agent's; no error contains any part of the
// key.
func FuzzParseCert(f *testing.F) {
	own, key := agenttest.Certificate(f, registration.ClusterUser(agenttest.ClusterName, "agent"))
	others, othersKey := agenttest.Certificate(f, registration.ClusterUser("c2", "agent"))
	headed := bytes.Replace(others, []byte("CERTIFICATE-----\n"), []byte("CERTIFICATE-----\nA: b\n\n"), 1)
	block, _ := pem.Decode(key)
	for _, pair := range [][2][]byte{
		{own, key}, {own, othersKey}, {others, othersKey}, {append(bytes.Clone(own), others...), key}, {append(bytes.Clone(others), own...), key},
		{append(bytes.Clone(headed), own...), key}, {append(bytes.Clone(key), own...), append(bytes.Clone(own), key...)},
		{own, append(bytes.Clone(othersKey), key...)}, {own, append(bytes.Clone(key), othersKey...)}, {own[:len(own)/2], key}, {own, key[:len(key)/2]},
		{own, bytes.ReplaceAll(key, []byte("EC PRIVATE KEY"), []byte("RSA PRIVATE KEY"))}, {own, pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: block.Bytes})},
		{own, []byte("-----BEGIN EC PRIVATE KEY-----\n" + fuzzedToken + "\n-----END EC PRIVATE KEY-----\n")}, {nil, key}, {own, nil},
	} {
		f.Add(pair[0], pair[1])
	}
	secret := block.Bytes[7 : 7+32] // the private scalar of the key
	f.Fuzz(func(t *testing.T, certificate, key []byte) {
		leaf, err := parseCert(certificate, key, agenttest.ClusterName, "agent")
		if err != nil {
			for _, text := range []string{fuzzedToken, string(secret), base64.StdEncoding.EncodeToString(block.Bytes)[10:30]} {
				if strings.Contains(err.Error(), text) {
					t.Errorf("the error has the key: %v", err)
				}
			}
			return
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			t.Fatalf("TLS does not take it: %v", err)
		}
		if !pair.Leaf.Equal(leaf) || leaf.Subject.CommonName != registration.ClusterUser(agenttest.ClusterName, "agent") {
			t.Errorf("the certificate is that of %q, and taken for that of %q", pair.Leaf.Subject.CommonName, leaf.Subject.CommonName)
		}
		// The certificate request and the annotation are for this key.
		request, err := newRequest(key, agenttest.ClusterName, "agent")
		if err != nil {
			t.Fatal(err)
		}
		if hash, err := keyHash(key); err != nil || len(hash) != 64 || !requestsKey(request, key) || requestsKey(request, othersKey) && !bytes.Contains(key, othersKey) {
			t.Errorf("the hash of its key is %q: %v", hash, err)
		}
	})
}

// FuzzRequestsKey: a request on the hub is the agent's if it is for the agent's key, and signed with it.
func FuzzRequestsKey(f *testing.F) {
	_, key := agenttest.Certificate(f, "a")
	_, other := agenttest.Certificate(f, "a")
	for _, with := range [][]byte{key, other} {
		request, err := newRequest(with, agenttest.ClusterName, "agent")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(request)
		f.Add(append(bytes.Clone(request), request...))
		f.Add(bytes.ReplaceAll(request, []byte("CERTIFICATE REQUEST"), []byte("CERTIFICATE")))
	}
	f.Add([]byte("-----BEGIN"))
	f.Add(key)
	signer, err := parseKey(key)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		if !requestsKey(request, key) {
			return
		}
		block, _ := pem.Decode(request)
		parsed, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil || !signer.Public().(*ecdsa.PublicKey).Equal(parsed.PublicKey) || requestsKey(request, other) {
			t.Errorf("%s is for %v: %v", request, parsed.PublicKey, err)
		}
	})
}
