// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"crypto"
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

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// validity is that of all certificates: clusters for development and tests are not kept longer.
const validity = 10 * 365 * 24 * time.Hour

// pki makes the certificates of a CA of its own, in one directory. What is there already is kept.
type pki struct{ dir string }

const ca = "ca"

func (p pki) cert(name string) string { return filepath.Join(p.dir, name+".crt") }
func (p pki) key(name string) string  { return filepath.Join(p.dir, name+".key") }

// create makes the CA and a certificate for each of the subjects, which are clients or servers on this machine.
func (p pki) create(subjects map[string]pkix.Name, dnsNames ...string) error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	if !exists(p.cert(ca)) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		owner := filepath.Base(filepath.Dir(p.dir))
		authority, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "cluster-provider-local-" + owner}, key)
		if err != nil {
			return err
		}
		if err := p.write(ca, authority.Raw, key); err != nil {
			return err
		}
	}
	certs, err := cert.CertsFromFile(p.cert(ca))
	if err != nil {
		return err
	}
	key, err := keyutil.PrivateKeyFromFile(p.key(ca))
	if err != nil {
		return err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return fmt.Errorf("%s cannot sign", p.key(ca))
	}
	for name, subject := range subjects {
		if err := p.leaf(certs[0], signer, name, subject, dnsNames); err != nil {
			return err
		}
	}
	return nil
}

func (p pki) leaf(authority *x509.Certificate, signer crypto.Signer, name string, subject pkix.Name, dnsNames []string) error {
	if exists(p.cert(name)) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		DNSNames:     append([]string{"localhost"}, dnsNames...),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:    authority.NotBefore,
		NotAfter:     time.Now().Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), signer)
	if err != nil {
		return err
	}
	return p.write(name, der, key)
}

// signingKey makes a key that signs tokens.
func (p pki) signingKey(name string) error {
	if exists(p.key(name)) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return writeFile(p.key(name), data)
}

// write writes the certificate last: with it, the pair is complete.
func (p pki) write(name string, der []byte, key *ecdsa.PrivateKey) error {
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	if err := writeFile(p.key(name), data); err != nil {
		return err
	}
	return writeFile(p.cert(name), pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}))
}
