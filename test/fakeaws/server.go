// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakeaws serves the parts of AWS IAM, STS and EKS that registration needs, over HTTP, to the real SDKs. It
// checks requests against AWS's API models, verifies their signatures, and decides by trust and identity policies.
// See README.md.
package fakeaws

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Server is several AWS accounts behind one address on loopback.
type Server struct {
	url  string
	http *http.Server
	tls  *interceptor

	mu       sync.Mutex
	now      func() time.Time
	accounts map[string]*Account
	keys     map[string]*accessKey
	ids      map[string]bool // unique IDs of the users and roles there are
	delay    visibility
	lag      Lag
	limits   Limits
	buckets  map[string]*bucket
	tagging  Tagging
	faults   []*fault
	random   *mathrand.Rand
	calls    []Call
	// signatures are those of requests, by who signed: they are good for minutes.
	signatures map[string][]string
}

// accessKey is what AWS knows of credentials.
type accessKey struct {
	secret, token string
	expires       time.Time // zero for those that stay
	who           identity
}

// visibility is how long a new role stays hidden.
type visibility struct {
	reads int
	until time.Duration
}

// Start starts a server without accounts. The same seed gives the same injected faults.
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
	if s.tls, err = newInterceptor(http.HandlerFunc(s.serve)); err != nil {
		return nil, err
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.http.Serve(listener) }()
	return s, nil
}

// ServeHTTP answers AWS's API, is the proxy to AWS's own host names, and EKS's authenticator.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		s.tls.connect(w, r)
	case strings.HasPrefix(r.URL.Path, webhookPath):
		s.tokenWebhook(w, r)
	default:
		s.serve(w, r)
	}
}

// URL is the endpoint of all services: for AWS_ENDPOINT_URL or an SDK's BaseEndpoint. As HTTPS_PROXY it serves AWS's own
// host names, for clients that insist on them; those need CA, too.
func (s *Server) URL() string { return s.url }

// Env is the environment in which the SDK's default configuration takes this server for AWS. AWS_ENDPOINT_URL alone is
// not enough: the client that fetches credentials by web identity only heeds the variable of its service.
func (s *Server) Env() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL": s.url, "AWS_ENDPOINT_URL_IAM": s.url, "AWS_ENDPOINT_URL_STS": s.url, "AWS_ENDPOINT_URL_EKS": s.url,
		"AWS_EC2_METADATA_DISABLED": "true",
	}
}

// CA is the certificate, in PEM, of the authority that vouches for AWS's host names behind the proxy.
func (s *Server) CA() []byte { return s.tls.caPEM }

// Close stops the server and ends the connections.
func (s *Server) Close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // clients that keep connections open are not waited for
	_ = s.http.Shutdown(ctx)
	_ = s.http.Close()
	s.tls.close()
}

// SetClock lets the server live at another time.
func (s *Server) SetClock(now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
}

// DelayVisibility hides each role that the API creates from now on, as IAM's eventual consistency does: GetRole and the
// lists do not know it, EKS takes it for an invalid principal, trust policies cannot name it and nobody can assume it,
// until that many of these looks are over and that time has passed. Writes do find it.
func (s *Server) DelayVisibility(reads int, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = visibility{reads, d}
}

// Age makes the roles and access entries that there are older, and brings the time closer when hidden ones are visible.
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

// ExpireSessions ends the temporary credentials given out until now.
func (s *Server) ExpireSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.keys {
		if !key.expires.IsZero() {
			key.expires = s.now()
		}
	}
}

// Secrets are what no log may have, by what it is: the secret keys and session tokens of all credentials that were given out, and
// the signatures that have come.
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

// newKey makes credentials; those with a lifetime have a session token. The caller holds the lock.
func (s *Server) newKey(who identity, lifetime time.Duration) (Credentials, time.Time) {
	kind, key := "AKIA", &accessKey{secret: rand.Text() + rand.Text()[:14], who: who}
	if lifetime > 0 {
		kind, key.token, key.expires = "ASIA", rand.Text()+rand.Text()+rand.Text(), s.now().Add(lifetime).Truncate(time.Second)
	}
	id := newID(kind)
	s.keys[id] = key
	return Credentials{id, key.secret, key.token}, key.expires
}

// newID makes a unique ID of IAM's, whose first letters say what it is of.
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
