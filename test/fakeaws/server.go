// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakeaws serves the parts of AWS IAM, STS and EKS that registration needs, over HTTP, to the real SDKs. It checks requests against AWS's API
// models, verifies their signatures, and decides by trust and identity policies. See README.md.
package fakeaws

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base32"
	"fmt"
	"github.com/clusterhub/clusterhub/test/fakeaws/proxy"
	"maps"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Server serves several AWS accounts at one loopback address.
type Server struct {
	url  string
	http *http.Server
	tls  *proxy.Interceptor

	mu       sync.Mutex
	now      func() time.Time
	accounts map[string]*Account
	keys     map[string]*accessKey
	ids      map[string]bool // unique IDs of the existing users and roles
	delay    visibility
	lag      Lag
	limits   Limits
	buckets  map[string]*bucket
	tagging  Tagging
	faults   []*fault
	random   *mathrand.Rand
	calls    []Call
	// signatures are the signatures of requests, by the signer. They are valid for minutes.
	signatures map[string][]string
}

// accessKey is AWS's data about credentials.
type accessKey struct {
	secret, token string
	expires       time.Time // zero for permanent ones
	who           identity
}

// visibility is the time for which a new role stays hidden.
type visibility struct {
	reads int
	until time.Duration
}

// Start starts a server without accounts. The same seed results in the same injected faults.
func Start(seed uint64) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{
		url:      "http://" + listener.Addr().String(),
		now:      time.Now,
		accounts: map[string]*Account{},
		keys:     map[string]*accessKey{},
		ids:      map[string]bool{},
		random:   mathrand.New(mathrand.NewPCG(seed, seed)),

		signatures: map[string][]string{},
	}
	s.tls, err = proxy.NewInterceptor(http.HandlerFunc(s.serve))
	if err != nil {
		return nil, err
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.http.Serve(listener) }()
	return s, nil
}

// ServeHTTP serves AWS's API, the proxy for AWS's own host names, and EKS's authenticator.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		s.tls.Connect(w, r)
	case strings.HasPrefix(r.URL.Path, webhookPath):
		s.tokenWebhook(w, r)
	default:
		s.serve(w, r)
	}
}

// URL returns the endpoint of all services, for AWS_ENDPOINT_URL or an SDK's BaseEndpoint. As HTTPS_PROXY it serves AWS's own host names, for clients
// that require them. These clients also need CA.
func (s *Server) URL() string { return s.url }

// Env returns the environment in which the SDK's default configuration uses this server as AWS. AWS_ENDPOINT_URL alone is not enough: the client that
// gets credentials by web identity only uses the variable of its service.
func (s *Server) Env() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL": s.url, "AWS_ENDPOINT_URL_IAM": s.url, "AWS_ENDPOINT_URL_STS": s.url, "AWS_ENDPOINT_URL_EKS": s.url,
		"AWS_EC2_METADATA_DISABLED": "true",
	}
}

// CA returns the certificate, in PEM, of the authority that has signed the certificates of AWS's host names behind the proxy.
func (s *Server) CA() []byte { return s.tls.CAPEM }

// Close stops the server and closes all connections.
func (s *Server) Close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // do not wait for clients that keep connections open
	_ = s.http.Shutdown(ctx)
	_ = s.http.Close()
	s.tls.Close()
}

// SetClock sets the server's clock.
func (s *Server) SetClock(now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
}

// DelayVisibility hides each role that the API creates from now on, like IAM's eventual consistency: GetRole and lists do not return it, EKS rejects
// it as an invalid principal, trust policies cannot refer to it and it cannot be assumed, until this number of such reads has happened and this time
// has passed. Writes do find it.
func (s *Server) DelayVisibility(reads int, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = visibility{reads, d}
}

// Age makes the existing roles and access entries older, and shortens the time in which hidden ones are not visible.
func (s *Server) Age(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.accounts {
		for _, r := range a.roles {
			r.created, r.hiddenUntil = r.created.Add(-d), r.hiddenUntil.Add(-d)
			r.pastPolicies.age(d)
			r.pastTags.age(d)
		}
		for _, c := range a.clusters {
			for _, e := range c.entries {
				e.CreatedAt -= int64(d.Seconds())
			}
			for _, p := range c.pastEntries {
				p.age(d)
			}
		}
	}
}

// ExpireSessions ends all temporary credentials that have been issued.
func (s *Server) ExpireSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.keys {
		if !key.expires.IsZero() {
			key.expires = s.now()
		}
	}
}

// Secrets returns values that no log may contain, by description: the secret keys and session tokens of all issued credentials, and the signatures of
// all requests.
func (s *Server) Secrets() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	secrets := map[string]string{}
	for id, key := range s.keys {
		secrets["secret key of "+id] = key.secret
		if key.token != "" {
			secrets["session token of "+id] = key.token
		}
		for i, signature := range s.signatures[id] {
			secrets[fmt.Sprintf("signature %d by %s", i+1, id)] = signature
		}
	}
	return secrets
}

// newKey creates credentials. Those with a lifetime have a session token. The caller holds the lock.
func (s *Server) newKey(who identity, lifetime time.Duration) (Credentials, time.Time) {
	kind, key := "AKIA", &accessKey{secret: rand.Text() + rand.Text()[:14], who: who}
	if lifetime > 0 {
		kind, key.token, key.expires = "ASIA", rand.Text()+rand.Text()+rand.Text(), s.now().Add(lifetime).Truncate(time.Second)
	}
	id := newID(kind)
	s.keys[id] = key
	return Credentials{id, key.secret, key.token}, key.expires
}

// newID creates a unique ID in IAM's format, whose first letters identify the kind.
func newID(kind string) string {
	random := make([]byte, 10)
	_, _ = rand.Read(random)
	return kind + base32.StdEncoding.EncodeToString(random)
}

func newUUID() string {
	var u [16]byte
	_, _ = rand.Read(u[:])
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// SetLag delays later writes. There is no delay by default.
func (s *Server) SetLag(l Lag) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = l
}

// SetLimits throttles later calls, by the server's clock. Without limits, which is the default, nothing is throttled. A throttled call takes no
// token.
func (s *Server) SetLimits(l Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = Limits{Each: maps.Clone(l.Each), Shared: maps.Clone(l.Shared)}
	s.buckets = map[string]*bucket{}
}

// SetTagging sets what EKS requires from now on.
func (s *Server) SetTagging(t Tagging) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tagging = t
}

// InProcess returns a client that calls this server without a network: for tests with many calls, and for testing/synctest bubbles, which cannot wait
// for a network. The server itself is started outside of the bubble, and uses the time of the bubble.
func (s *Server) InProcess() *http.Client {
	return &http.Client{Transport: proxy.InProcess{Handler: s}}
}

// HTTPClient returns a client that uses AWS's own host names for this server.
func (s *Server) HTTPClient() *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(s.tls.CA)
	proxy, _ := url.Parse(s.url) // it is our own URL
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots}}}
}
