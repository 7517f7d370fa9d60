// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

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
	"math/big"
	"net"
	"time"
)

const (
	caLifetime   = 10 * 365 * 24 * time.Hour
	leafLifetime = 90 * 24 * time.Hour
	// clockSkew is the time before now from which a certificate is valid, for clients whose clock is behind.
	clockSkew = 5 * time.Minute

	pemCertificate = "CERTIFICATE"
	pemPrivateKey  = "PRIVATE KEY"
)

// authority is a CA with its key.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// leaf is a serving certificate with its key. The key never leaves the memory of this process.
type leaf struct {
	certPEM, keyPEM []byte
	issuer          *x509.Certificate
	renewAt         time.Time
	notAfter        time.Time
}

func newAuthority(now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(fmt.Sprintf("hub-apiserver-serving-ca@%d", now.Unix()), now, now.Add(caLifetime))
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.MaxPathLenZero = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key}, nil
}

// parseAuthority parses a CA. Its errors never contain the input, which may be a private key.
func parseAuthority(certPEM, keyPEM []byte) (*authority, error) {
	certs, err := parseCertificates(certPEM)
	if err != nil {
		return nil, err
	}
	if len(certs) != 1 {
		return nil, fmt.Errorf("expected one certificate, found %d", len(certs))
	}
	if !certs[0].IsCA {
		return nil, errors.New("the certificate is not a CA certificate")
	}
	block, _ := pem.Decode(keyPEM)
	if block == nil || block.Type != pemPrivateKey {
		return nil, errors.New("the key is not a PKCS #8 private key in PEM form")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the key is not a PKCS #8 private key")
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key cannot sign")
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(certs[0].PublicKey) {
		return nil, errors.New("the key does not belong to the certificate")
	}
	return &authority{cert: certs[0], key: key}, nil
}

// rotateAt returns when less than 20 % of the CA's lifetime remains.
func (a *authority) rotateAt() time.Time {
	return a.cert.NotAfter.Add(-a.cert.NotAfter.Sub(a.cert.NotBefore) / 5)
}

func (a *authority) keyPEM() ([]byte, error) {
	return encodeKey(a.key)
}

// issue returns a new serving certificate for dnsNames and 127.0.0.1. It is valid for 90 days, but not longer than the CA, and due for renewal after
// two thirds of that.
func (a *authority) issue(dnsNames []string, now time.Time) (*leaf, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	notAfter := now.Add(leafLifetime)
	if notAfter.After(a.cert.NotAfter) {
		notAfter = a.cert.NotAfter
	}
	template, err := newTemplate(dnsNames[0], now, notAfter)
	if err != nil {
		return nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = dnsNames
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return &leaf{
		certPEM: pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: der}),
		keyPEM:  keyPEM,
		issuer:  a.cert,
		renewAt: now.Add(notAfter.Sub(now) / 3 * 2),

		notAfter: notAfter,
	}, nil
}

func newTemplate(commonName string, now, notAfter time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	subject := pkix.Name{CommonName: commonName}
	if len(commonName) > 64 { // the limit of X.509; clients check the DNS names
		subject = pkix.Name{CommonName: "hub-apiserver"}
	}
	return &x509.Certificate{
		SerialNumber:          serial,
		Subject:               subject,
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              notAfter,
		BasicConstraintsValid: true,
	}, nil
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemPrivateKey, Bytes: der}), nil
}

func encodeCertificates(certs ...*x509.Certificate) []byte {
	var out []byte
	for _, cert := range certs {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: cert.Raw})...)
	}
	return out
}

func parseCertificates(data []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for rest := data; ; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type != pemCertificate {
			return nil, errors.New("there is PEM data that is not a certificate")
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("a certificate cannot be parsed")
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, errors.New("there is no certificate in PEM form")
	}
	return certs, nil
}
