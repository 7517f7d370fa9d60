// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package localhub

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
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// validity is that of all certificates; a hub on a developer's machine is not kept longer.
const validity = 10 * 365 * 24 * time.Hour

// pki makes the certificates of the processes, in one directory. What is there already is kept.
type pki struct{ dir string }

type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func (p pki) file(name string) string { return filepath.Join(p.dir, name) }

func (p pki) has(name string) bool {
	_, certErr := os.Stat(p.file(name + ".crt"))
	_, keyErr := os.Stat(p.file(name + ".key"))
	return certErr == nil && keyErr == nil
}

func (p pki) authority(name string) (*authority, error) {
	if !p.has(name) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "clusterhub-local-" + name}, key)
		if err != nil {
			return nil, err
		}
		if err := p.write(name, ca.Raw, key); err != nil {
			return nil, err
		}
	}
	certs, err := cert.CertsFromFile(p.file(name + ".crt"))
	if err != nil {
		return nil, err
	}
	key, err := keyutil.PrivateKeyFromFile(p.file(name + ".key"))
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s.key cannot sign", p.file(name))
	}
	return &authority{certs[0], signer}, nil
}

// leaf makes a certificate for a client and server on this machine.
func (p pki) leaf(ca *authority, name string, subject pkix.Name, dnsNames ...string) error {
	if p.has(name) {
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
		NotBefore:    ca.cert.NotBefore,
		NotAfter:     time.Now().Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return err
	}
	return p.write(name, der, key)
}

// signingKey makes a key that signs tokens, with its public half beside it.
func (p pki) signingKey(name string) error {
	if _, err := os.Stat(p.file(name + ".key")); err == nil {
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
	return os.WriteFile(p.file(name+".key"), data, 0o600)
}

func (p pki) write(name string, der []byte, key *ecdsa.PrivateKey) error {
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
	// The certificate comes last: with it, the pair is complete.
	return errors.Join(os.WriteFile(p.file(name+".key"), data, 0o600), os.WriteFile(p.file(name+".crt"), certificate, 0o600))
}

// kubeconfig writes a kubeconfig for the front with the certificate of that name inside. It keeps the contexts of other
// clusters that a user has put in.
func (p pki) kubeconfig(file, server, name string) error {
	read := func(name string) []byte {
		data, _ := os.ReadFile(p.file(name)) // client-go says so when it is missing
		return data
	}
	const local = "clusterhub-local"
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		config = clientcmdapi.NewConfig()
	}
	config.Clusters[local] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: read("ca.crt")}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: read(name + ".crt"), ClientKeyData: read(name + ".key")}
	config.Contexts[local] = &clientcmdapi.Context{Cluster: local, AuthInfo: name}
	config.CurrentContext = local
	return clientcmd.WriteToFile(*config, file)
}
