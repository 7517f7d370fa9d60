// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"regexp"
	"sync"
	"time"
)

// Interceptor serves AWS's host names to clients that use the proxy.
type Interceptor struct {
	CAPEM []byte
	CA    *x509.Certificate
	key   *ecdsa.PrivateKey
	http  *http.Server
	conns *connListener

	mu    sync.Mutex
	certs map[string]*tls.Certificate
}

// awsHost matches the hosts that the proxy serves itself. It forwards to no other hosts.
var awsHost = regexp.MustCompile(`^[a-z0-9.-]+\.amazonaws\.com(\.cn)?:443$`)

func NewInterceptor(handler http.Handler) (*Interceptor, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fakeaws"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	i := &Interceptor{
		CAPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), CA: ca, key: key,
		http: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}, certs: map[string]*tls.Certificate{},
		conns: &connListener{conns: make(chan net.Conn), closed: make(chan struct{})},
	}
	go func() { _ = i.http.Serve(tls.NewListener(i.conns, &tls.Config{GetCertificate: i.certificate})) }()
	return i, nil
}

func (i *Interceptor) Close() { _ = i.http.Close() }

func (i *Interceptor) Connect(w http.ResponseWriter, r *http.Request) {
	if !awsHost.MatchString(r.Host) {
		http.Error(w, "fakeaws is a proxy to AWS only, not to "+r.Host, http.StatusForbidden)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if _, err := conn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		_ = conn.Close()
		return
	}
	select {
	case i.conns.conns <- conn:
	case <-i.conns.closed:
		_ = conn.Close()
	}
}

// certificate creates a certificate for the host that the client requests.
func (i *Interceptor) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if c := i.certs[hello.ServerName]; c != nil {
		return c, nil
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(i.certs) + 2)), DNSNames: []string{hello.ServerName},
		NotBefore: i.CA.NotBefore, NotAfter: i.CA.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.CA, i.key.Public(), i.key)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: i.key}
	i.certs[hello.ServerName] = c
	return c, nil
}

// connListener is a listener for existing connections.
type connListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *connListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *connListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *connListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
