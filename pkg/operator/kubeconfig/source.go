// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig is about the two kinds of kubeconfigs of an operator that works on a cluster from outside: the source, which is
// an admin's and which a user has put into a Secret, and those that are minted of it, one for each ServiceAccount, with a token that
// is renewed. See docs/design/minted.md.
package kubeconfig

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

// Names in a minted kubeconfig, as Open Cluster Management has them.
const (
	mintedCluster = "cluster"
	mintedContext = "context"
	mintedUser    = "user"
)

// Source is a way to a cluster as its admin, that Parse has checked: an https server, the CA that verifies it, and the
// credentials, all of them in it and not in files. It is immutable. It prints as its server, never with its credentials.
type Source struct {
	server, serverName string
	ca                 []byte
	roots              *x509.CertPool
	// proxy may have a password.
	proxy       *url.URL
	token       string
	cert, key   []byte
	certificate *tls.Certificate
	// minted is made of it once: it is compared each time that a Secret is looked at.
	minted []byte
}

// Server is the https URL of the API server: without credentials, query or fragment.
func (s *Source) Server() string { return s.server }

// TLSServerName is the name in the server's certificate, if it is not the server's host; else "".
func (s *Source) TLSServerName() string { return s.serverName }

// CA has the certificates in PEM of which one verifies the server.
func (s *Source) CA() []byte { return bytes.Clone(s.ca) }

// BearerToken is the admin's, or "" if a certificate says who the admin is.
func (s *Source) BearerToken() string { return s.token }

// TLSConfig verifies the server, and has the admin's certificate if there is one.
func (s *Source) TLSConfig() *tls.Config {
	config := &tls.Config{RootCAs: s.roots, ServerName: s.serverName, MinVersion: tls.VersionTLS12}
	if s.certificate != nil {
		config.Certificates = []tls.Certificate{*s.certificate}
	}
	return config
}

// Proxy is the one of the source. Without one, the environment of the process decides, as with every client of Kubernetes: it is
// written by who deploys the process, and the proxy sees no more than TLS.
func (s *Source) Proxy() func(*http.Request) (*url.URL, error) {
	if s.proxy != nil {
		return http.ProxyURL(s.proxy)
	}
	return http.ProxyFromEnvironment
}

// Hash changes if anything changes that matters: the server, how it is verified and reached, and the credentials. It is the same in
// every process, and tells nothing of what it is made of, as there is always a key or a token among that.
func (s *Source) Hash() string {
	return digest([]byte(s.server), []byte(s.serverName), s.ca, []byte(s.proxyURL()), []byte(s.token), s.cert, s.key)
}

// digest is a SHA-256 of parts, which do not run into each other.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, part := range parts {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part))) // a hash takes everything
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Minted is the kubeconfig of a process that has it, and a token in the file "token" beside it: the server as the source has it, with
// its CA, tls-server-name and proxy-url, which may have a password. Nothing of the admin is in it. It is the same each time. There is no error for a
// source that Parse has given.
func (s *Source) Minted() ([]byte, error) {
	if s == nil || len(s.minted) == 0 {
		return nil, errors.New("a kubeconfig is minted of a source that was parsed, and there is none")
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

// Redact takes the credentials of the source out of a text that others wrote, such as a server that repeats the token that it does
// not take. It finds them as they are, and not in another encoding.
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

// Format implements fmt.Formatter: whatever the verb, there are no credentials in it.
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
