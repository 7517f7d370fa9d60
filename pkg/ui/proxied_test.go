// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// page is the name of the server for browsers, and idToken the user's token of the proxy.
const (
	page    = "hub.example.com"
	idToken = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl-_"
)

// startProxied starts a server whose configuration for the hub has credentials, which must not be used.
func startProxied(t *testing.T, adapt ...func(*ProxiedConfig)) *fixture {
	t.Helper()
	hub, way := startHub(t)
	config := ProxiedConfig{Hub: way, Files: files, Hosts: []string{page, "localhost:4180"}, SignOut: "/oauth2/sign_out"}
	for _, a := range adapt {
		a(&config)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := NewProxied(config, listener.Addr())
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, &Local{Server: server}, hub, listener)
}

// proxied returns a request as the proxy sends it.
func (f *fixture) proxied(method, path, body string, headers ...string) *http.Request {
	f.t.Helper()
	r := f.request(method, path, body, "Host", page, "Authorization", "Bearer "+idToken)
	if method == http.MethodPost {
		r.Header.Set("Origin", "https://"+page)
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

// TestProxied_SendsTokenOfUser verifies that the hub gets the token of the user, and no other credentials.
func TestProxied_SendsTokenOfUser(t *testing.T) {
	f := startProxied(t)
	for _, token := range []string{idToken, "another.users.token"} {
		a := f.do(f.proxied("GET", members+"?limit=1", "", "Authorization", "Bearer "+token, "Cookie", "_oauth2_proxy=secret", "Proxy-Authorization", "Basic eA==",
			"Impersonate-User", "admin", "Impersonate-Group", "system:masters", "Impersonate-Extra-X", "y", "Impersonate-Uid", "1", "X-Remote-User", "admin", "X-Remote-Group", "system:masters",
			"X-Forwarded-User", "admin", "X-Forwarded-Access-Token", "secret", "X-Forwarded-For", "127.0.0.1", "Forwarded", "for=1", "X-Http-Method-Override", "DELETE",
			"Te", "trailers", "Keep-Alive", "timeout=5", "Referer", "https://"+page+"/v/clusters"))
		if a.code != http.StatusOK {
			t.Fatalf("got %d: %s", a.code, a.body)
		}
		asked, _ := f.hub.requests()
		last := asked[len(asked)-1]
		if got := last.Header["Authorization"]; !slices.Equal(got, []string{"Bearer " + token}) {
			t.Errorf("the hub is asked with %q", got)
		}
		var names []string
		for name := range last.Header {
			names = append(names, name)
		}
		slices.Sort(names)
		if !slices.Equal(names, []string{"Accept", "Accept-Encoding", "Authorization", "User-Agent"}) || last.RequestURI != "/clusters/a/apis/view.clusterhub.dev/v1alpha1/clustersetmembers?limit=1" {
			t.Errorf("the hub hears %q of %s", names, last.RequestURI)
		}
		if strings.Contains(fmt.Sprint(last.Header), userToken) {
			t.Error("the hub hears the credentials of the server")
		}
		for _, name := range []string{"Set-Cookie", "Access-Control-Allow-Origin", "Audit-Id", "Warning"} {
			if a.header.Get(name) != "" {
				t.Errorf("the browser gets the header %s of the hub", name)
			}
		}
	}
}

func TestProxied_ReportsUser(t *testing.T) {
	f := startProxied(t)
	f.hub.answer = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"status":{"userInfo":{"username":"`+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+`"}}}`)
	}
	for _, user := range []string{"ann", "bob", "ann"} {
		var about About
		a := f.do(f.proxied("GET", "/session", "", "Authorization", "Bearer "+user))
		if err := json.Unmarshal([]byte(a.body), &about); err != nil || about != (About{User: user, Kubectl: "kubectl", SignOut: "/oauth2/sign_out"}) {
			t.Errorf("%s gets %d %s: %v", user, a.code, a.body, err)
		}
	}
}

func TestProxied_Attack_OtherPagesAndPrograms(t *testing.T) {
	f := startProxied(t)
	for name, test := range map[string]struct {
		headers []string
		code    int
	}{
		"no token":                        {[]string{"Authorization", ""}, 401},
		"a password":                      {[]string{"Authorization", "Basic YTpi"}, 401},
		"no token after its name":         {[]string{"Authorization", "Bearer "}, 401},
		"two tokens in one":               {[]string{"Authorization", "Bearer a, Bearer b"}, 401},
		"a token with a space":            {[]string{"Authorization", "Bearer a b"}, 401},
		"a token with a quote":            {[]string{"Authorization", `Bearer "a"`}, 401},
		"the token as a cookie":           {[]string{"Authorization", "", "Cookie", "token=" + idToken}, 401},
		"the token as another header":     {[]string{"Authorization", "", "X-Forwarded-Access-Token", idToken}, 401},
		"another site's script":           {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, 403},
		"a site beside this":              {[]string{"Sec-Fetch-Site", "same-site", "Origin", "https://evil.example.com"}, 403},
		"an Origin of the other scheme":   {[]string{"Origin", "http://" + page}, 403},
		"an Origin of the other name":     {[]string{"Origin", "http://localhost:4180"}, 403},
		"a frame without an origin":       {[]string{"Sec-Fetch-Site", "", "Origin", "null"}, 403},
		"an image of another site":        {[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, 403},
		"a link to data":                  {[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		"a name that leads here":          {[]string{"Host", "evil.example"}, 403},
		"the address itself":              {[]string{"Host", "127.0.0.1"}, 403},
		"our name on another port":        {[]string{"Host", page + ":8443"}, 403},
		"a name that ends like ours":      {[]string{"Host", "a." + page}, 403},
		"a name with a dot at the end":    {[]string{"Host", page + "."}, 403},
		"an upgrade to a WebSocket":       {[]string{"Upgrade", "websocket", "Connection", "Upgrade"}, 400},
		"an upgrade to SPDY":              {[]string{"Upgrade", "SPDY/3.1", "Connection", "Upgrade"}, 400},
		"a browser that says no site":     {[]string{"Sec-Fetch-Site", "", "Sec-Fetch-Mode", "", "Sec-Fetch-Dest", ""}, 200},
		"the other name":                  {[]string{"Host", "localhost:4180"}, 200},
		"the scheme in small letters":     {[]string{"Authorization", "bearer " + idToken}, 200},
		"a name of a header in our token": {[]string{"Connection", "Authorization"}, 200},
	} {
		r := f.proxied("GET", members, "", test.headers...)
		if test.code != http.StatusOK {
			f.refused(name, r, test.code)
			continue
		}
		if a := f.do(r); a.code != test.code {
			t.Errorf("%s: got %d: %s", name, a.code, a.body)
		}
	}
	two := f.proxied("GET", members, "")
	two.Header["Authorization"] = []string{"Bearer a", "Bearer b"}
	f.refused("two headers Authorization", two, http.StatusBadRequest)
	a := f.do(f.proxied("GET", members, "", "Authorization", ""))
	if a.status.Reason != ReasonNoSession || !strings.Contains(a.status.Message, "open https://"+page+" and log in") {
		t.Errorf("without a token, what to do is %+v", a.status)
	}
}

// TestProxied_Attack_OtherResources verifies that it reads the same resources as "kubectl hub ui", by the same list.
func TestProxied_Attack_OtherResources(t *testing.T) {
	f := startProxied(t)
	const review = "/hub/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	for name, test := range map[string]struct {
		method, path, body string
		code               int
	}{
		"secrets":                  {"GET", "/hub/api/v1/namespaces/a/secrets", "", 403},
		"a pod's log":              {"GET", "/hub/api/v1/namespaces/a/pods/b/log", "", 403},
		"a token":                  {"POST", "/hub/api/v1/namespaces/a/serviceaccounts/b/token", "{}", 403},
		"the way around":           {"GET", "/hub/api/v1/namespaces/../../secrets", "", 400},
		"the way around, encoded":  {"GET", "/hub/api/v1/namespaces/%2e%2e/secrets", "", 400},
		"a slash in a name":        {"GET", "/hub/apis/view.clusterhub.dev%2Fv1alpha1/clustersetmembers", "", 400},
		"metrics":                  {"GET", "/hub/metrics", "", 403},
		"who others are":           {"POST", "/hub/apis/authorization.k8s.io/v1/subjectaccessreviews", "{}", 403},
		"a parameter of its own":   {"GET", members + "?dryRun=All", "", 400},
		"deleting":                 {"DELETE", members, "", 405},
		"writing":                  {"PUT", members, "{}", 400},
		"patching":                 {"PATCH", members, "{}", 400},
		"looking at the head":      {"HEAD", members, "", 405},
		"asking for options":       {"OPTIONS", members, "", 405},
		"a large question":         {"POST", review, `{"a":"` + strings.Repeat("a", maxQuestion) + `"}`, 413},
		"a question of other kind": {"POST", review, `{"apiVersion":"v1","kind":"Secret"}`, 400},
		"a secret of a link":       {"POST", "/session", `{"token":"a"}`, 405},
	} {
		f.refused(name, f.proxied(test.method, test.path, test.body), test.code)
	}
	a := f.do(f.proxied("POST", review, `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview"}`))
	if asked, _ := f.hub.requests(); a.code != http.StatusOK || len(asked) != 1 || asked[0].Header.Get("Authorization") != "Bearer "+idToken {
		t.Errorf("a question gets %d: %s", a.code, a.body)
	}
}

func TestProxied_Attack_SmuggledRequests(t *testing.T) {
	f := startProxied(t)
	as := "Host: " + page + "\r\nSec-Fetch-Site: same-origin\r\n"
	token := "Authorization: Bearer " + idToken + "\r\n"
	hidden := "GET " + members + " HTTP/1.1\r\n" + as + token + "\r\n"
	f.smuggle(map[string]string{
		"two tokens":                      "GET " + members + " HTTP/1.1\r\n" + as + token + "authorization: Bearer b\r\n\r\n",
		"a token on two lines":            "GET " + members + " HTTP/1.1\r\n" + as + "Authorization: Bearer a\r\n b\r\n\r\n",
		"a token with a zero":             "GET " + members + " HTTP/1.1\r\n" + as + "Authorization: Bearer a\x00b\r\n\r\n",
		"a name with a space at its end":  "GET " + members + " HTTP/1.1\r\n" + as + "Authorization : Bearer a\r\n\r\n",
		"an underscore in a header":       "GET " + members + " HTTP/1.1\r\n" + as + "Authorization_: Bearer a\r\n\r\n",
		"a token after the headers":       "GET " + members + " HTTP/1.1\r\n" + as + "Transfer-Encoding: chunked\r\nTrailer: Authorization\r\n\r\n0\r\n" + token + "\r\n",
		"a request in the body of GET":    "GET / HTTP/1.1\r\n" + as + "Content-Length: " + fmt.Sprint(len(hidden)) + "\r\n\r\n" + hidden,
		"a length and parts":              "POST /session HTTP/1.1\r\n" + as + token + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"an absolute path":                "GET https://" + page + members + " HTTP/1.1\r\n" + as + token + "\r\n",
		"two names":                       "GET " + members + " HTTP/1.1\r\nHost: evil.example\r\n" + as + token + "\r\n",
		"a tunnel":                        "CONNECT " + page + ":443 HTTP/1.1\r\n" + as + token + "\r\n",
		"an upgrade to HTTP/2 in between": "GET " + members + " HTTP/1.1\r\n" + as + token + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n",
		"a token as large as all headers": "GET " + members + " HTTP/1.1\r\n" + as + "Authorization: Bearer " + strings.Repeat("a", 2*maxHeaders) + "\r\n\r\n",
	})
}

// TestProxied_LinksToViewsAreAllowed verifies that links to views are allowed, which users send each other, and which a login redirects to.
func TestProxied_LinksToViewsAreAllowed(t *testing.T) {
	f := startProxied(t)
	for _, path := range []string{"/", "/v/clusters/paris-1?q=a"} {
		a := f.do(f.proxied("GET", path, "", append(opened("cross-site"), "Authorization", "")...))
		if a.code != http.StatusOK || !strings.Contains(a.body, "the page") || !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") || a.header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: got %d %v", path, a.code, a.header)
		}
	}
	f.refused("a script of another site", f.proxied("GET", "/app.js", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"), 403)
	f.refused("a link to the script", f.proxied("GET", "/app.js", "", opened("cross-site")...), 403)
	f.refused("a frame of another site", f.proxied("GET", "/v/clusters", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"), 403)
}

// TestProxied_Attack_TokensAreNotDisclosed verifies that the token is in no response and in no log, whatever fails.
func TestProxied_Attack_TokensAreNotDisclosed(t *testing.T) {
	var logged bytes.Buffer
	log.SetOutput(&logged)
	t.Cleanup(func() { log.SetOutput(io.Discard) })
	f := startProxied(t)
	for name, answer := range map[string]http.HandlerFunc{
		"a hub that refuses": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) },
		"a hub that leads elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://evil.example", http.StatusFound)
		},
		"a hub that says it in plain": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, r.Header.Get("Authorization"), http.StatusBadGateway)
		},
		"a hub that breaks off": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		f.hub.mu.Lock()
		f.hub.answer = answer
		f.hub.mu.Unlock()
		a := f.do(f.proxied("GET", members, ""))
		if shown := a.body + fmt.Sprint(a.header); a.code < 400 || strings.Contains(shown, idToken) {
			t.Errorf("%s: got %d %s", name, a.code, shown)
		}
	}
	f.hub.Close()
	for _, r := range []*http.Request{f.proxied("GET", members, ""), f.proxied("GET", "/session", ""), f.proxied("GET", "/"+idToken, ""), f.proxied(idToken, "/", ""),
		f.proxied("GET", members+"?"+idToken+"=1", ""), f.proxied("GET", members, "", "Host", idToken)} {
		if a := f.do(r); strings.Contains(a.body+fmt.Sprint(a.header), idToken) {
			t.Errorf("%s %s: got %s", r.Method, r.URL, a.body)
		}
	}
	if strings.Contains(logged.String(), idToken) {
		t.Errorf("it is logged: %s", logged.String())
	}
}

// TestProxied_WatchesEnd: the hub validates a token when a watch begins, so watches must end.
func TestProxied_WatchesEnd(t *testing.T) {
	f := startProxied(t)
	for query, want := range map[string]string{"?watch=1": "300", "?watch=true&timeoutSeconds=7": "7", "?watch=1&timeoutSeconds=3600": "300", "?watch=1&timeoutSeconds=-1": "300",
		"?watch=1&timeoutSeconds=99999999999999999999": "300", "?limit=1": ""} {
		f.do(f.proxied("GET", members+query, ""))
		asked, _ := f.hub.requests()
		if got := asked[len(asked)-1].URL.Query().Get("timeoutSeconds"); got != want {
			t.Errorf("%s: the hub is asked to end it after %q s, not %q", query, got, want)
		}
	}
	deaf := &upstream{timeout: time.Second, watchFor: WatchTTL}
	if got := deaf.within(&question{watch: true}); got <= WatchTTL || got > WatchTTL+time.Minute {
		t.Errorf("a hub that does not end a watch has %s", got)
	}
}

// TestProxied_Attack_WatchesAreLimited verifies that one user cannot use up all requests.
func TestProxied_Attack_WatchesAreLimited(t *testing.T) {
	f := startProxied(t)
	f.running = newCounter(2, 3)
	hold := make(chan struct{})
	f.hub.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		<-hold
	}
	ended := make(chan answer, 3)
	open := func(token string) {
		before, _ := f.hub.requests()
		go func() { ended <- f.do(f.proxied("GET", members+"?watch=1", "", "Authorization", "Bearer "+token)) }()
		soon(t, "the hub is asked", func() bool { asked, _ := f.hub.requests(); return len(asked) > len(before) })
	}
	open("ann")
	open("ann")
	f.refused("the third of one user", f.proxied("GET", members, "", "Authorization", "Bearer ann"), http.StatusTooManyRequests)
	open("bob")
	f.refused("the fourth of all", f.proxied("GET", members, "", "Authorization", "Bearer cyd"), http.StatusTooManyRequests)
	close(hold)
	for range 3 {
		<-ended
	}
	soon(t, "they are counted no more", func() bool {
		f.running.mu.Lock()
		defer f.running.mu.Unlock()
		return f.running.all == 0 && len(f.running.running) == 0
	})
}

func TestNewProxied_Rejects(t *testing.T) {
	_, way := startHub(t)
	here := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	for _, hosts := range [][]string{nil, {""}, {"*"}, {"*.example.com"}, {"https://hub.example.com"}, {"hub.example.com/"}, {"Hub.example.com"}, {"a b"}, {"a:b"}, {"[::1"}} {
		if _, err := NewProxied(ProxiedConfig{Hub: way, Files: files, Hosts: hosts}, here); err == nil {
			t.Errorf("the names %q are taken", hosts)
		}
	}
	if _, err := NewProxied(ProxiedConfig{Hub: way, Files: files, Hosts: []string{page}}, &net.TCPAddr{IP: net.IPv4zero, Port: 1}); err == nil {
		t.Error("all addresses of a machine are taken: nobody is logged in there")
	}
	for host, want := range map[string]string{page: "https", "10.0.0.1:8443": "https", "127.0.0.1:4180": "http", "[::1]:4180": "http", "localhost": "http", "localhost.example.com": "https"} {
		if got := schemeOf(host); got != want {
			t.Errorf("browsers get to %s by %s", host, got)
		}
	}
}
