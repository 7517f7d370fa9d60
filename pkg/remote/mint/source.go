// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mint handles the two kinds of kubeconfigs of an operator that works on a cluster from outside: the source, which belongs to an admin
// and which a user has put into a Secret, and those that are minted from it, one for each ServiceAccount, with a token that is renewed. See
// docs/design/detached.md.
package mint

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Names in a minted kubeconfig. Open Cluster Management uses the same.
const (
	mintedCluster = "cluster"
	mintedContext = "context"
	mintedUser    = "user"
)

// Source gives access to a cluster as its admin, and was validated by Parse: an https server, the CA that verifies it, and the credentials, all
// embedded and not in files. It is immutable. It prints as its server, never with its credentials.
type Source struct {
	server, serverName string
	ca                 []byte
	roots              *x509.CertPool
	// proxy may contain a password.
	proxy       *url.URL
	token       string
	cert, key   []byte
	certificate *tls.Certificate
	// minted is encoded once: it is compared at each reconcile of a Secret.
	minted []byte
}

// Server returns the https URL of the API server, without credentials, query or fragment.
func (s *Source) Server() string { return s.server }

// TLSServerName returns the name in the server's certificate if it differs from the server's host, or "".
func (s *Source) TLSServerName() string { return s.serverName }

// CA returns the certificates in PEM of which one verifies the server.
func (s *Source) CA() []byte { return bytes.Clone(s.ca) }

// BearerToken returns the admin's token, or "" if the admin has a certificate.
func (s *Source) BearerToken() string { return s.token }

// TLSConfig returns a configuration that verifies the server, with the admin's certificate if the source has one.
func (s *Source) TLSConfig() *tls.Config {
	config := &tls.Config{RootCAs: s.roots, ServerName: s.serverName, MinVersion: tls.VersionTLS12}
	if s.certificate != nil {
		config.Certificates = []tls.Certificate{*s.certificate}
	}
	return config
}

// Proxy returns the proxy of the source. Without one, the environment of the process applies, as with every client of Kubernetes: it is set by the
// user who deploys the process, and the proxy sees only TLS.
func (s *Source) Proxy() func(*http.Request) (*url.URL, error) {
	if s.proxy != nil {
		return http.ProxyURL(s.proxy)
	}
	return http.ProxyFromEnvironment
}

// Hash returns a hash that changes with everything relevant: the server, how it is verified and reached, and the credentials. It is the same in every
// process, and reveals nothing of its input, which always includes a key or a token.
func (s *Source) Hash() string {
	return digest([]byte(s.server), []byte(s.serverName), s.ca, []byte(s.proxyURL()), []byte(s.token), s.cert, s.key)
}

// digest returns a SHA-256 of parts, with their lengths as separators.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, part := range parts {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part))) // writing to a hash never fails
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Minted returns the kubeconfig for a process that has a token in the file "token" beside it: the server as in the source, with its CA,
// tls-server-name and proxy-url, which may contain a password. It has nothing of the admin. It is the same each time. No error is returned for a
// source that Parse returned.
func (s *Source) Minted() ([]byte, error) {
	if s == nil || len(s.minted) == 0 {
		return nil, errors.New("a minted kubeconfig requires a parsed source, which is not set")
	}
	return bytes.Clone(s.minted), nil
}

func (s *Source) mint() (err error) {
	s.minted, err = clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{mintedCluster: {
			Server: s.server, TLSServerName: s.serverName, CertificateAuthorityData: s.ca, ProxyURL: s.proxyURL()}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{mintedUser: {TokenFile: TokenKey}},
		Contexts:       map[string]*clientcmdapi.Context{mintedContext: {Cluster: mintedCluster, AuthInfo: mintedUser}},
		CurrentContext: mintedContext,
	})
	return err
}

// Redact removes the credentials of the source from a text that others wrote, such as a server that repeats the token that it rejects. It finds them
// as they are, and not in other encodings.
func (s *Source) Redact(text string) string {
	secrets := []string{s.token, string(s.key)}
	if s.proxy != nil {
		if password, _ := s.proxy.User.Password(); password != "" {
			secrets = append(secrets, password, url.QueryEscape(password))
		}
	}
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return text
}

func (s *Source) proxyURL() string {
	if s.proxy == nil {
		return ""
	}
	return s.proxy.String()
}

// Format implements fmt.Formatter: no verb prints credentials.
func (s *Source) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// String implements fmt.Stringer.
func (s *Source) String() string {
	if s == nil {
		return "no kubeconfig"
	}
	return "the kubeconfig for " + s.server
}

// MarshalLog implements logr.Marshaler.
func (s *Source) MarshalLog() any { return s.String() }
