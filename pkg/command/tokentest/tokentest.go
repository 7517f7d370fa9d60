// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tokentest provides a server that rejects tokens, for tests of code that reads kubeconfigs.
package tokentest

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Guard is a server that accepts one token at a time, at first "one", and a folder with its kubeconfig.
type Guard struct {
	*httptest.Server
	// Dir has the files kubeconfig, token, host and ca.crt. The kubeconfig names the file of the token.
	Dir string
	// Answer handles authenticated requests. The default returns a version.
	Answer http.HandlerFunc

	t       testing.TB
	mu      sync.Mutex
	token   string
	refused int
	sent    map[string]bool
}

// New starts a Guard, which ends with the test.
func New(t testing.TB) *Guard {
	t.Helper()
	g := &Guard{t: t, token: "one", sent: map[string]bool{}, Dir: t.TempDir()}
	g.Answer = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"major":"1","minor":"30"}`)) }
	g.Server = httptest.NewTLSServer(http.HandlerFunc(g.serve))
	t.Cleanup(g.Close)
	g.Put("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw})))
	g.Put("host", g.URL)
	g.Put("token", "one\n")
	g.Put("kubeconfig", "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: '"+g.URL+"', certificate-authority: ca.crt}}]\nusers: [{name: u, user: {tokenFile: token}}]\n")
	return g
}

func (g *Guard) serve(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	g.mu.Lock()
	g.sent[token] = true
	good := token == g.token
	if !good {
		g.refused++
	}
	g.mu.Unlock()
	if !good {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	g.Answer(w, r)
}

// Put writes a file to the folder.
func (g *Guard) Put(name, content string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.Dir, name), []byte(content), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// Path returns the path of a file in the folder.
func (g *Guard) Path(name string) string { return filepath.Join(g.Dir, name) }

// Take makes the server accept only the given token, and returns the number of requests that it has rejected before.
func (g *Guard) Take(token string) (refused int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	refused, g.refused, g.token = g.refused, 0, token
	return refused
}

// Sent reports whether a token was sent; "" stands for a request without one.
func (g *Guard) Sent(token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sent[token]
}

// Ask sends a request.
func Ask(t testing.TB, config *rest.Config) error {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return Asks(client)
}

// Asks sends a request with a client.
func Asks(client kubernetes.Interface) error {
	_, err := client.Discovery().ServerVersion()
	return err
}

// Follows fails the test unless ask sends the token of the file as soon as the previous one is rejected: after one or two rejections, while client-go
// alone would send the previous one for most of a minute.
func (g *Guard) Follows(what string, ask func() error) {
	g.t.Helper()
	g.Put("token", "one\n")
	g.Take("one")
	var err error
	for range 3 { // it may have cached an earlier token
		if err = ask(); err == nil {
			break
		}
	}
	if err != nil {
		g.t.Errorf("%s: %v", what, err)
		return
	}
	g.Put("token", "two\n")
	g.Take("two")
	for range 3 {
		if err = ask(); err == nil {
			break
		}
	}
	if refused := g.Take("two"); err != nil || refused > 2 || refused == 0 {
		g.t.Errorf("%s: the token of the file was sent after %d refusals: %v", what, refused, err)
	}
}
