// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// userToken is the token of the kubeconfig. Only the hub may see it.
const userToken = "the-users-token"

// fakeHub records its requests.
type fakeHub struct {
	*httptest.Server
	mu    sync.Mutex
	asked []*http.Request
	// bodies are the bodies of the requests.
	bodies []string
	// answer handles requests. If it is nil, the response is an empty list.
	answer http.HandlerFunc
}

func (f *fakeHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.asked, f.bodies = append(f.asked, r), append(f.bodies, string(body))
	answer := f.answer
	f.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Set-Cookie", "a=b")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Audit-Id", "1")
	w.Header().Set("Warning", `299 - "old"`)
	_, _ = io.WriteString(w, `{"kind":"List","items":[]}`)
}

// requests returns all requests and their bodies.
func (f *fakeHub) requests() ([]*http.Request, []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked, f.bodies
}

// fixture is a running server, and the hub behind it.
type fixture struct {
	*Local
	t   *testing.T
	hub *fakeHub
	// host is the server's address, and stop stops it.
	host string
	// key is the key of the last browser session.
	key   string
	stop  context.CancelFunc
	ended chan error
}

// files are the page's files, and others.
var files = fstest.MapFS{
	"index.html": {Data: []byte("<!doctype html><title>the page</title>")}, "app.js": {Data: []byte("run()")}, "assets.go": {Data: []byte("package assets")},
	"folder/secret.js": {Data: []byte("secret")},
}

// startHub returns a hub, and a configuration for a user who has credentials and impersonates another.
func startHub(t *testing.T) (*fakeHub, *rest.Config) {
	t.Helper()
	hub := &fakeHub{}
	hub.Server = httptest.NewUnstartedServer(hub)
	hub.Config.ErrorLog = log.New(io.Discard, "", 0)
	hub.StartTLS()
	t.Cleanup(hub.Close)
	return hub, &rest.Config{Host: hub.URL + "/clusters/a", BearerToken: userToken, UserAgent: "kubectl-hub",
		Impersonate: rest.ImpersonationConfig{UserName: "dana", Groups: []string{"team"}},
		TLSClientConfig: rest.TLSClientConfig{
			CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hub.Certificate().Raw})}}
}

func start(t *testing.T, adapt ...func(*Options)) *fixture {
	t.Helper()
	hub, way := startHub(t)
	config := Options{
		Hub: way, Files: files,
		About: About{Server: hub.URL, Context: "hub", Impersonating: "dana", Kubectl: "kubectl --context hub"},
	}
	for _, a := range adapt {
		a(&config)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := New(config, listener.Addr())
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, server, hub, listener)
}

// serve runs a server until the test ends.
func serve(t *testing.T, server *Local, hub *fakeHub, listener net.Listener) *fixture {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fixture{Local: server, t: t, hub: hub, host: listener.Addr().String(), stop: cancel, ended: make(chan error, 1)}
	go func() { f.ended <- f.Serve(ctx, listener) }()
	t.Cleanup(cancel)
	return f
}

// token returns the secret of a new link.
func (f *fixture) token() string {
	_, token, _ := strings.Cut(f.Link(), "#token=")
	return token
}

// request returns a request like the page's: method, path and headers in pairs. An empty value removes a header. Host is one of them.
func (f *fixture) request(method, path, body string, headers ...string) *http.Request {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), method, "http://"+f.host+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Sec-Fetch-Mode", "cors")
	r.Header.Set("Sec-Fetch-Dest", "empty")
	if method == http.MethodPost {
		r.Header.Set("Origin", "http://"+f.host)
		r.Header.Set("Content-Type", "application/json")
	}
	if f.key != "" {
		r.Header.Set(keyHeader, f.key)
	}
	for i := 0; i < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			r.Host = headers[i+1]
		case headers[i+1] == "":
			r.Header.Del(headers[i])
		default:
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return r
}

// answer is a response of the server.
type answer struct {
	code   int
	header http.Header
	body   string
	status metav1.Status
}

// do sends a request to the server.
func (f *fixture) do(r *http.Request) answer {
	f.t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(r)
	if err != nil {
		f.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		f.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	a := answer{code: response.StatusCode, header: response.Header, body: string(body)}
	_ = json.Unmarshal(body, &a.status)
	return a
}

// letIn starts a browser session and returns its cookie.
func (f *fixture) letIn() string {
	f.t.Helper()
	a := f.do(f.request("POST", "/session", `{"token":"`+f.token()+`"}`))
	var given struct{ Key string }
	if err := json.Unmarshal([]byte(a.body), &given); err != nil || a.code != http.StatusOK || given.Key == "" {
		f.t.Fatalf("a browser with a good token gets %d: %s", a.code, a.body)
	}
	f.key = given.Key
	cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	return cookie
}

// refused verifies that a request is rejected and does not reach the hub.
func (f *fixture) refused(name string, r *http.Request, code int) {
	f.t.Helper()
	before, _ := f.hub.requests()
	a := f.do(r)
	if a.code != code {
		f.t.Errorf("%s: %s %s: got %d, want %d: %s", name, r.Method, r.URL, a.code, code, a.body)
	}
	if after, _ := f.hub.requests(); len(after) != len(before) {
		f.t.Errorf("%s: the hub was asked %s %s", name, after[len(after)-1].Method, after[len(after)-1].RequestURI)
	}
	if a.header.Get("Content-Security-Policy") == "" || a.header.Get("Access-Control-Allow-Origin") != "" {
		f.t.Errorf("%s: the headers are %v", name, a.header)
	}
}

// soon waits until a condition holds, for up to 20 seconds.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not after 20 s", what)
		}
	}
}
