// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	// certificateLifetime is longer than any run: the certificates are created at each start, and never renewed during a run.
	certificateLifetime = 10 * 365 * 24 * time.Hour
	// clockSkew is the time before now from which a certificate is valid, in case the clock is set back after the start.
	clockSkew = time.Hour
)

// pki holds the paths of the certificates of one run.
type pki struct {
	caFile                    string
	serverCertFile, serverKey string
	clientCertFile, clientKey string
}

// createPKI replaces dir by a new CA, a server certificate for loopback and a client certificate. The CA's key is never written, so that no other
// client certificate can be issued later.
func createPKI(dir string) (pki, error) {
	p := pki{
		caFile:         filepath.Join(dir, "ca.crt"),
		serverCertFile: filepath.Join(dir, "server.crt"),
		serverKey:      filepath.Join(dir, "server.key"),
		clientCertFile: filepath.Join(dir, "client.crt"),
		clientKey:      filepath.Join(dir, "client.key"),
	}
	if err := os.RemoveAll(dir); err != nil {
		return pki{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return pki{}, err
	}

	caTemplate, err := certificateTemplate("hub-apiserver-embedded-etcd-ca")
	if err != nil {
		return pki{}, err
	}
	caTemplate.IsCA = true
	caTemplate.MaxPathLenZero = true
	caTemplate.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pki{}, err
	}
	caDER, err := x509.CreateCertificate(rand.Reader, caTemplate, caTemplate, caKey.Public(), caKey)
	if err != nil {
		return pki{}, err
	}
	ca, err := x509.ParseCertificate(caDER)
	if err != nil {
		return pki{}, err
	}
	if err := writePEM(p.caFile, "CERTIFICATE", caDER); err != nil {
		return pki{}, err
	}

	server, err := certificateTemplate("hub-apiserver-embedded-etcd")
	if err != nil {
		return pki{}, err
	}
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	server.DNSNames = []string{"localhost"}
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	if err := issue(server, ca, caKey, p.serverCertFile, p.serverKey); err != nil {
		return pki{}, err
	}

	client, err := certificateTemplate("hub-apiserver")
	if err != nil {
		return pki{}, err
	}
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if err := issue(client, ca, caKey, p.clientCertFile, p.clientKey); err != nil {
		return pki{}, err
	}
	return p, nil
}

func certificateTemplate(commonName string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(certificateLifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}, nil
}

// issue creates a key, signs template for it with the CA and writes both.
func issue(template, ca *x509.Certificate, caKey *ecdsa.PrivateKey, certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(keyFile, "PRIVATE KEY", keyDER); err != nil {
		return err
	}
	return writePEM(certFile, "CERTIFICATE", der)
}

func writePEM(path, blockType string, der []byte) error {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}
