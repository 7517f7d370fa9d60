// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// KeyHash returns the hash by which the hub knows a private key.
func KeyHash(t *testing.T, key []byte) string {
	t.Helper()
	parsed, err := keyutil.ParsePrivateKeyPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(parsed.(crypto.Signer).Public())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// Certificate returns a self-signed certificate of a user, in the groups of the cluster's agents, and its key.
func Certificate(t testing.TB, user string) (certificate, key []byte) {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(1700000000, 0), NotAfter: time.Unix(1800000000, 0),
		Subject: pkix.Name{CommonName: user, Organization: []string{registration.ClusterGroup(ClusterName), registration.ManagedClustersGroup}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(signer)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

// LoadKubeconfig parses a kubeconfig.
func LoadKubeconfig(t *testing.T, data []byte) *clientcmdapi.Config {
	t.Helper()
	config, err := clientcmd.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	return config
}
