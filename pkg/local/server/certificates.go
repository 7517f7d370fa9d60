// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// validity is the validity of all certificates: servers for development and tests do not exist longer.
const validity = 10 * 365 * 24 * time.Hour

// Certificates is a directory of certificates and keys, with a name for each pair. Existing ones are retained.
//
// A server that trusts a CA accepts everything that the CA has signed, and will sign. So each CA is for one purpose.
type Certificates struct{ Dir string }

// Cert returns the file of a certificate.
func (c Certificates) Cert(name string) string { return filepath.Join(c.Dir, name+".crt") }

// Key returns the file of a private key.
func (c Certificates) Key(name string) string { return filepath.Join(c.Dir, name+".key") }

// Authority signs certificates of its directory.
type Authority struct {
	certificates Certificates
	cert         *x509.Certificate
	key          crypto.Signer
}

// Authority creates a CA with that subject, or returns the existing one.
func (c Certificates) Authority(name, commonName string) (*Authority, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	if !exists(c.Cert(name)) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: commonName}, key)
		if err != nil {
			return nil, err
		}
		if err := c.write(name, ca.Raw, key); err != nil {
			return nil, err
		}
	}
	certs, err := cert.CertsFromFile(c.Cert(name))
	if err != nil {
		return nil, err
	}
	key, err := keyutil.PrivateKeyFromFile(c.Key(name))
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s is not a private key for signing", c.Key(name))
	}
	return &Authority{certificates: c, cert: certs[0], key: signer}, nil
}

// Server creates a certificate for a server on this machine, with further names.
func (a *Authority) Server(name, commonName string, dnsNames ...string) error {
	return a.leaf(name, pkix.Name{CommonName: commonName}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, dnsNames...)
}

// Client creates a client certificate.
func (a *Authority) Client(name string, subject pkix.Name) error {
	return a.leaf(name, subject, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth})
}

// Peer creates a certificate for a member of a cluster, which is a server and a client of the others.
func (a *Authority) Peer(name, commonName string) error {
	return a.leaf(name, pkix.Name{CommonName: commonName}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth})
}

// leaf creates a certificate. It replaces an existing one of another CA, or for another purpose.
func (a *Authority) leaf(name string, subject pkix.Name, usages []x509.ExtKeyUsage, dnsNames ...string) error {
	if exists(a.certificates.Cert(name)) {
		certs, err := cert.CertsFromFile(a.certificates.Cert(name))
		if err != nil {
			return err
		}
		if slices.Equal(certs[0].ExtKeyUsage, usages) && certs[0].CheckSignatureFrom(a.cert) == nil {
			return nil
		}
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
		NotBefore:    a.cert.NotBefore,
		NotAfter:     time.Now().Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  usages,
	}
	if slices.Contains(usages, x509.ExtKeyUsageServerAuth) {
		template.DNSNames = append([]string{"localhost"}, dnsNames...)
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	return a.certificates.write(name, der, key)
}

// SigningKey creates a key for signing tokens.
func (c Certificates) SigningKey(name string) error {
	if exists(c.Key(name)) {
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
	return WriteFile(c.Key(name), data)
}

// Bundle concatenates the certificates of CAs, for a server that trusts all of them.
func (c Certificates) Bundle(name string, authorities ...string) error {
	var bundle []byte
	for _, authority := range authorities {
		data, err := os.ReadFile(c.Cert(authority))
		if err != nil {
			return err
		}
		bundle = append(bundle, data...)
	}
	return WriteFile(c.Cert(name), bundle)
}

// write writes the certificate last: with it, the pair is complete.
func (c Certificates) write(name string, der []byte, key *ecdsa.PrivateKey) error {
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	if err := WriteFile(c.Key(name), data); err != nil {
		return err
	}
	return WriteFile(c.Cert(name), pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}))
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}
