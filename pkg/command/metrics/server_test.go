// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"

	"github.com/clusterhub/clusterhub/test/await"
)

// apiServer knows the tokens "reader" and "stranger", and authorizes the first. requests counts the requests to it.
func apiServer(t *testing.T) (config *rest.Config, requests *atomic.Int32) {
	t.Helper()
	requests = &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis/authentication.k8s.io/v1/tokenreviews":
			review := read[authenticationv1.TokenReview](t, r)
			if token := review.Spec.Token; token == "reader" || token == "stranger" {
				review.Status.Authenticated = true
				review.Status.User = authenticationv1.UserInfo{Username: "u-" + token, UID: "7", Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
			} else {
				review.Status.Error, review.Status.User.Username = "no such token", "u-reader"
			}
			review.Spec.Token = ""
			write(t, w, review)
		case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
			review := read[authorizationv1.SubjectAccessReview](t, r)
			if s := review.Spec; s.UID != "7" || s.Groups[0] != "g" || s.Extra["k"][0] != "v" || s.ResourceAttributes != nil {
				t.Errorf("asked whether %+v may", s)
			}
			on := review.Spec.NonResourceAttributes
			review.Status.Allowed = review.Spec.User == "u-reader" && *on == authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
			write(t, w, review)
		default:
			t.Errorf("asked for %s", r.URL)
		}
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, requests
}

func read[T any](t *testing.T, r *http.Request) *T {
	t.Helper()
	object := new(T)
	if err := json.NewDecoder(r.Body).Decode(object); err != nil {
		t.Error(err)
	}
	return object
}

func write(t *testing.T, w http.ResponseWriter, object any) {
	t.Helper()
	if err := json.NewEncoder(w).Encode(object); err != nil {
		t.Error(err)
	}
}

// served returns the address of a server of "the metrics".
func served(t *testing.T, o Options, config *rest.Config) string {
	t.Helper()
	s := New(o, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "the metrics") }))
	if config != nil {
		if err := s.Use(config); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := s.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server := s.HTTP()
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

// send sends a request as it is written: no client cleans it up.
func send(t *testing.T, address string, secure bool, lines ...string) (int, http.Header, string) {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if secure {
		connection = tls.Client(connection, &tls.Config{InsecureSkipVerify: true})
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(time.Now().Add(await.Limit)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(connection, strings.Join(lines, "\r\n")+"\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, strings.TrimSpace(string(body))
}

func TestServer_AllowsReaders(t *testing.T) {
	dir := t.TempDir() // so that no certificate is created for each
	put(t, dir, made(t, "localhost"))
	const get, reader = "GET /metrics HTTP/1.1", "Authorization: Bearer reader"
	for name, test := range map[string]struct {
		lines []string
		want  int
		body  string
		// asked is the number of requests to the API server.
		asked int32
	}{
		"the right":            {[]string{get, reader}, 200, "the metrics", 2},
		"a query":              {[]string{"GET /metrics?name[]=x HTTP/1.1", reader}, 200, "the metrics", 2},
		"a scheme in capitals": {[]string{get, "Authorization: BEARER reader"}, 200, "the metrics", 2},
		"no token":             {[]string{get}, 401, "Unauthorized", 0},
		"an empty token":       {[]string{get, "Authorization: Bearer "}, 401, "Unauthorized", 0},
		"a scheme alone":       {[]string{get, "Authorization: reader"}, 401, "Unauthorized", 0},
		"another scheme":       {[]string{get, "Authorization: Basic reader"}, 401, "Unauthorized", 0},
		"two tokens":           {[]string{get, "Authorization: Bearer stranger", reader}, 401, "Unauthorized", 0},
		"two in one":           {[]string{get, "Authorization: Bearer stranger reader"}, 401, "Unauthorized", 0},
		"another's token":      {[]string{get, "Authorization: Bearer abc"}, 401, "Unauthorized", 1},
		"without the right":    {[]string{get, "Authorization: Bearer stranger"}, 403, "Forbidden", 2},
		"a user in a header":   {[]string{get, "X-Remote-User: u-reader", "Impersonate-User: u-reader"}, 401, "Unauthorized", 0},
		"a long token":         {[]string{get, "Authorization: Bearer " + strings.Repeat("a", maxToken+1)}, 401, "Unauthorized", 0},
		"a huge token":         {[]string{get, "Authorization: Bearer " + strings.Repeat("a", 64<<10)}, 431, "431 Request Header Fields Too Large", 0},
		"another path":         {[]string{"GET /debug/pprof/ HTTP/1.1", reader}, 404, "404 page not found", 0},
		"a path that goes up":  {[]string{"GET /metrics/../debug HTTP/1.1", reader}, 404, "404 page not found", 0},
		"a path that comes up": {[]string{"GET /debug/../metrics HTTP/1.1", reader}, 404, "404 page not found", 0},
		"two slashes":          {[]string{"GET //metrics HTTP/1.1", reader}, 404, "404 page not found", 0},
		"a slash more":         {[]string{"GET /metrics/ HTTP/1.1", reader}, 404, "404 page not found", 0},
		"a path in disguise":   {[]string{"GET /%6detrics HTTP/1.1", reader}, 404, "404 page not found", 0},
		"a slash in disguise":  {[]string{"GET /metrics%2f HTTP/1.1", reader}, 404, "404 page not found", 0},
		"a write":              {[]string{"POST /metrics HTTP/1.1", reader}, 405, "Method Not Allowed", 0},
		"all of the server":    {[]string{"OPTIONS * HTTP/1.1", reader}, 404, "404 page not found", 0},
	} {
		t.Run(name, func(t *testing.T) {
			config, requests := apiServer(t)
			address := served(t, Options{Address: "127.0.0.1:0", Secure: true, CertDir: dir}, config)
			code, header, body := send(t, address, true, test.lines...)
			if code != test.want || body != test.body || requests.Load() != test.asked {
				t.Errorf("status %d, %q after %d requests, want %d, %q after %d", code, body, requests.Load(), test.want, test.body, test.asked)
			}
			if challenge := header.Get("WWW-Authenticate"); (challenge == "Bearer") != (code == 401) {
				t.Errorf("the challenge of %d is %q", code, challenge)
			}
		})
	}
}

// Before the API server is known, and while it does not respond, no client is allowed. The response does not reveal why.
func TestServer_DeniesWithoutReview(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, config := range map[string]*rest.Config{"nobody to ask": nil, "nobody answers": {Host: gone.URL}} {
		address := served(t, Options{Address: "127.0.0.1:0", Secure: true}, config)
		if code, _, body := send(t, address, true, "GET /metrics HTTP/1.1", "Authorization: Bearer reader"); code != 500 || body != "Internal Server Error" {
			t.Errorf("%s: %d, %q", name, code, body)
		}
	}
}

func TestServer_PlaintextOnLoopback(t *testing.T) {
	address := served(t, Options{Address: "127.0.0.1:0"}, nil)
	if code, _, body := send(t, address, false, "GET /metrics HTTP/1.1"); code != 200 || body != "the metrics" {
		t.Errorf("%d, %q", code, body)
	}
	if code, _, _ := send(t, address, false, "GET /debug/pprof HTTP/1.1"); code != 404 {
		t.Errorf("another path: %d", code)
	}
	for _, none := range []string{"", Off} {
		stop, err := New(Options{Address: none}, nil).Serve(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		stop()
	}
	if _, err := New(Options{Address: address}, nil).Serve(t.Context()); err == nil {
		t.Error("an address that is taken is no error")
	}
	config, _ := apiServer(t)
	if code, _, _ := send(t, served(t, Options{Address: "127.0.0.1:0", Secure: true}, config), false, "GET /metrics HTTP/1.1"); code != 400 {
		t.Errorf("plain HTTP where HTTPS is wanted: %d", code)
	}
}

// pair is a certificate and its key, by their file names.
type pair map[string][]byte

func made(t *testing.T, name string) pair {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey(name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pair{certFile: cert, keyFile: key}
}

func put(t *testing.T, dir string, files pair) {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A certificate is reloaded when it changes; with half of a new pair the previous one stays.
func TestCertificate_IsReloaded(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, made(t, "first"))
	c, err := newCertificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c.now = func() time.Time { return now }
	name := func() string {
		t.Helper()
		got, err := c.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		return got.Leaf.DNSNames[0]
	}
	second := made(t, "second")
	put(t, dir, pair{certFile: second[certFile]})
	for _, step := range []struct {
		after time.Duration
		files pair
		want  string
	}{{0, nil, "first"}, {checkInterval, nil, "first"}, {0, pair{keyFile: second[keyFile]}, "first"}, {checkInterval, nil, "second"}} {
		now = now.Add(step.after)
		put(t, dir, step.files)
		if got := name(); got != step.want {
			t.Errorf("the certificate is that of %s, want %s", got, step.want)
		}
	}
	if _, err := newCertificate(t.TempDir()); err == nil {
		t.Error("a folder without a certificate is taken")
	}
}

func TestCertificate_SelfSignedIsRenewed(t *testing.T) {
	c, err := newCertificate("")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c.now = func() time.Time { return now }
	first, _ := c.get(nil)
	if again, _ := c.get(nil); again != first {
		t.Error("it is made anew at each handshake")
	}
	now = now.Add(ownRenewal)
	if later, _ := c.get(nil); later == first || !first.Leaf.NotAfter.After(now) {
		t.Errorf("one that ends at %v is served at %v", first.Leaf.NotAfter, now)
	}
}
