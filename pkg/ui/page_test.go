// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/client-go/rest"
)

// opened returns the headers of a browser that opens a page.
func opened(site string) []string {
	return []string{"Sec-Fetch-Site", site, "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
}

func TestPage_Files(t *testing.T) {
	f := start(t)
	for at, want := range map[string]string{"/": "the page", "/index.html": "the page", "/v/clusters/paris-1": "the page", "/v/clusters/paris.example": "the page",
		"/v/a%2Fb": "the page", "/app.js": "run()"} {
		a := f.do(f.request("GET", at, ""))
		if a.code != http.StatusOK || !strings.Contains(a.body, want) || a.header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.HasPrefix(a.header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self';") {
			t.Errorf("%s: got %d %v %s", at, a.code, a.header, a.body)
		}
	}
	for _, at := range []string{"/assets.go", "/folder/secret.js", "/folder", "/../page.go", "/v", "/..%2fpage.go", "/index.html/", "/APP.JS", "/?../app.js%00"} {
		if a := f.do(f.request("GET", at, "")); a.code != http.StatusNotFound && at != "/?../app.js%00" || strings.Contains(a.body, "package") || strings.Contains(a.body, "run()") {
			t.Errorf("%s: got %d %s", at, a.code, a.body)
		}
	}
	for _, method := range []string{"POST", "HEAD", "PUT", "DELETE", "OPTIONS"} {
		f.refused(method, f.request(method, "/", ""), http.StatusMethodNotAllowed)
	}
}

// TestPage_LinksFromOtherSites verifies that other sites can only link a browser to the start of the page, although the page contains no secrets.
func TestPage_LinksFromOtherSites(t *testing.T) {
	f := start(t)
	for name, r := range map[string]*http.Request{
		"the address is typed":           f.request("GET", "/", "", opened("none")...),
		"the address of a view is typed": f.request("GET", "/v/clusters", "", opened("none")...),
		"a file leads to it":             f.request("GET", "/", "", opened("cross-site")...),
		"a link of its own":              f.request("GET", "/v/clusters", "", opened("same-origin")...),
		"a browser that says nothing":    f.request("GET", "/v/clusters", "", "Sec-Fetch-Site", ""),
		"its own script":                 f.request("GET", "/app.js", "", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"),
	} {
		if a := f.do(r); a.code != http.StatusOK {
			t.Errorf("%s: got %d: %s", name, a.code, a.body)
		}
	}
	for name, r := range map[string]*http.Request{
		"another site leads to a view": f.request("GET", "/v/clusters", "", opened("cross-site")...),
		"another port leads to a view": f.request("GET", "/v/clusters", "", opened("same-site")...),
		"a frame of another site":      f.request("GET", "/", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"),
		"a script of another site":     f.request("GET", "/app.js", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"),
		"a request of another site":    f.request("GET", "/", "", "Sec-Fetch-Site", "cross-site"),
		"an Origin of another site":    f.request("GET", "/", "", "Sec-Fetch-Site", "", "Origin", "https://evil.example"),
		"a name that leads here":       f.request("GET", "/", "", "Host", "evil.example:"+f.port()),
		"a frame that no page has":     f.request("GET", "/", "", "Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"),
	} {
		f.refused(name, r, http.StatusForbidden)
	}
}

func TestSession_ReportsUserAndContext(t *testing.T) {
	f := start(t)
	cookie := f.letIn()
	f.hub.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	ask := func() (about About) {
		a := f.do(f.request("GET", "/session", "", "Cookie", cookie))
		if err := json.Unmarshal([]byte(a.body), &about); err != nil || a.code != http.StatusOK {
			t.Fatalf("got %d %s: %v", a.code, a.body, err)
		}
		return about
	}
	if about := ask(); about.User != "" || about.Context != "hub" || about.Impersonating != "dana" || about.Kubectl != "kubectl --context hub" || about.Server != f.hub.URL {
		t.Errorf("got %+v", about)
	}
	f.hub.mu.Lock()
	f.hub.answer = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"status":{"userInfo":{"username":"`+r.Header.Get("Impersonate-User")+`"}}}`)
	}
	f.hub.mu.Unlock()
	if about := ask(); about.User != "dana" {
		t.Errorf("got %+v", about)
	}
	ask()
	if asked, _ := f.hub.requests(); len(asked) != 2 || asked[1].Method != "POST" || asked[1].URL.Path != "/clusters/a/apis/authentication.k8s.io/v1/selfsubjectreviews" {
		t.Errorf("the hub was asked %d times who the user is: %v", len(asked), asked)
	}
}

func TestNew_LoopbackOnly(t *testing.T) {
	good := Options{Hub: &rest.Config{Host: "https://hub.example"}, Files: fstest.MapFS{"index.html": {}}}
	for address, ok := range map[string]bool{"127.0.0.1": true, "127.1.2.3": true, "::1": true, "0.0.0.0": false, "::": false, "10.0.0.1": false, "192.0.2.1": false} {
		_, err := New(good, &net.TCPAddr{IP: net.ParseIP(address), Port: 1})
		if (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := New(good, &net.UnixAddr{Name: "a"}); err == nil {
		t.Error("a socket is no loopback")
	}
	if _, err := New(Options{Hub: good.Hub, Files: fstest.MapFS{"app.js": {}}}, &net.TCPAddr{IP: net.IPv6loopback}); err == nil || !strings.Contains(err.Error(), "index.html") {
		t.Errorf("without a page: %v", err)
	}
}
