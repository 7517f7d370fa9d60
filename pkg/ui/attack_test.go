// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterhub/clusterhub/test/await"
)

const members = "/hub/apis/view.clusterhub.dev/v1alpha1/clustersetmembers"

// TestAttack_OtherPagesAndPrograms verifies that requests that do not come from the page never reach the hub.
func TestAttack_OtherPagesAndPrograms(t *testing.T) {
	f := start(t)
	cookie := f.letIn()
	with := func(headers ...string) []string { return append([]string{"Cookie", cookie}, headers...) }
	if a := f.do(f.request("GET", members, "", with()...)); a.code != http.StatusOK {
		t.Fatalf("the page gets %d: %s", a.code, a.body)
	}
	for name, test := range map[string]struct {
		headers []string
		code    int
	}{
		"no cookie":                          {nil, 401},
		"a cookie that another port got":     {with(keyHeader, ""), 401},
		"a key of another browser":           {with(keyHeader, f.key+"A"), 401},
		"a wrong cookie":                     {[]string{"Cookie", cookie[:len(cookie)-1] + "a"}, 401},
		"an empty cookie":                    {[]string{"Cookie", strings.SplitAfter(cookie, "=")[0]}, 401},
		"the token as a cookie":              {[]string{"Cookie", strings.SplitAfter(cookie, "=")[0] + f.token()}, 401},
		"the cookie twice":                   {with("Cookie", cookie+"; "+cookie), 401},
		"the cookie of another port":         {[]string{"Cookie", "kubectl-hub-ui-1=" + strings.SplitAfter(cookie, "=")[1]}, 401},
		"the token as a bearer token":        {[]string{"Authorization", "Bearer " + f.token()}, 401},
		"another site's script":              {with("Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"), 403},
		"another site, without an Origin":    {with("Sec-Fetch-Site", "cross-site"), 403},
		"a page on another port":             {with("Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:1"), 403},
		"an Origin alone":                    {with("Sec-Fetch-Site", "", "Origin", "https://evil.example"), 403},
		"a frame without an origin":          {with("Sec-Fetch-Site", "", "Origin", "null"), 403},
		"an Origin of the other scheme":      {with("Origin", "https://"+f.host), 403},
		"no site in the header":              {with("Sec-Fetch-Site", " "), 403},
		"an image of another site":           {with("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"), 403},
		"a script that includes it":          {with("Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"), 403},
		"a frame of the page":                {with("Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"), 403},
		"a user who types the address":       {with("Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"), 403},
		"a name that leads here":             {with("Host", "evil.example"), 403},
		"a name that leads here, and port":   {with("Host", "evil.example:"+f.port()), 403},
		"another port":                       {with("Host", "127.0.0.1:1"), 403},
		"no port":                            {with("Host", "127.0.0.1"), 403},
		"a name that ends like ours":         {with("Host", "a.localhost:"+f.port()), 403},
		"a name with a dot at the end":       {with("Host", "localhost.:"+f.port()), 403},
		"another address of this machine":    {with("Host", "127.0.0.2:"+f.port()), 403},
		"the same address in another form":   {with("Host", "2130706433:"+f.port()), 403},
		"an upgrade to a WebSocket":          {with("Upgrade", "websocket", "Connection", "Upgrade"), 400},
		"an upgrade to SPDY":                 {with("Upgrade", "SPDY/3.1", "Connection", "keep-alive, Upgrade"), 400},
		"an upgrade in Connection alone":     {with("Connection", "x, UPGRADE"), 400},
		"a browser that does not say a site": {with("Sec-Fetch-Site", "", "Sec-Fetch-Mode", "", "Sec-Fetch-Dest", ""), 200},
		"the other name":                     {with("Host", "localhost:"+f.port()), 200},
	} {
		r := f.request("GET", members, "", test.headers...)
		if test.code == http.StatusOK {
			if a := f.do(r); a.code != test.code {
				t.Errorf("%s: got %d: %s", name, a.code, a.body)
			}
			continue
		}
		f.refused(name, r, test.code)
	}
	// A map cannot have a header twice.
	for _, name := range single {
		r := f.request("GET", members, "", with()...)
		r.Header[name] = []string{r.Header.Get(name), "cross-site"}
		f.refused("two headers "+name, r, http.StatusBadRequest)
	}
	f.refused("a session by another site", f.request("POST", "/session", `{"token":"`+f.token()+`"}`, "Sec-Fetch-Site", "cross-site"), 403)
	f.refused("a session by a form", f.request("POST", "/session", `{"token":"`+f.token()+`"}`, "Content-Type", "text/plain"), 415)
	f.refused("a session by a browser that says nothing", f.request("POST", "/session", `{"token":"`+f.token()+`"}`, "Sec-Fetch-Site", "", "Origin", ""), 403)
	f.refused("who it is", f.request("GET", "/session", ""), 401)
	f.refused("who it is, by another site", f.request("GET", "/session", "", with("Sec-Fetch-Site", "cross-site")...), 403)
}

// port returns the server's port.
func (f *fixture) port() string {
	_, port, _ := net.SplitHostPort(f.host)
	return port
}

// TestAttack_SmuggledRequests: the HTTP parser must agree with what is checked, so the requests are sent as bytes.
func TestAttack_SmuggledRequests(t *testing.T) {
	f := start(t)
	cookie := f.letIn()
	asPage := "Host: " + f.host + "\r\nCookie: " + cookie + "\r\n" + keyHeader + ": " + f.key + "\r\nSec-Fetch-Site: same-origin\r\n"
	secret := "GET /hub/api/v1/namespaces/a/secrets HTTP/1.1\r\n" + asPage + "\r\n"
	f.smuggle(map[string]string{
		"an absolute path of another server": "GET http://evil.example" + members + " HTTP/1.1\r\n" + asPage + "\r\n",
		"an absolute path of this one":       "GET http://" + f.host + members + " HTTP/1.1\r\n" + asPage + "\r\n",
		"two names":                          "GET " + members + " HTTP/1.1\r\nHost: evil.example\r\n" + asPage + "\r\n",
		"no name":                            "GET " + members + " HTTP/1.0\r\nCookie: " + cookie + "\r\n\r\n",
		"a tunnel":                           "CONNECT " + f.host + " HTTP/1.1\r\n" + asPage + "\r\n",
		"a body of GET":                      "GET " + members + " HTTP/1.1\r\n" + asPage + "Content-Length: " + fmt.Sprint(len(secret)) + "\r\n\r\n" + secret,
		"a body of GET in parts":             "GET " + members + " HTTP/1.1\r\n" + asPage + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + secret,
		"two lengths":                        "GET " + members + " HTTP/1.1\r\n" + asPage + "Content-Length: 0\r\nContent-Length: 9\r\n\r\n" + secret,
		"a length and parts":                 "POST /session HTTP/1.1\r\n" + asPage + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + secret,
		"a header with a space":              "GET " + members + " HTTP/1.1\r\n" + asPage + "Origin : http://evil.example\r\n\r\n",
		"a header in two lines":              "GET " + members + " HTTP/1.1\r\n" + asPage + "Accept: a\r\n b\x00\r\n\r\n",
		"the preface of HTTP/2":              "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"all of the server":                  "OPTIONS * HTTP/1.1\r\n" + asPage + "\r\n",
		"a fragment":                         "GET " + members + "#/../../secrets HTTP/1.1\r\n" + asPage + "\r\n",
		"a large header":                     "GET " + members + " HTTP/1.1\r\n" + asPage + "A: " + strings.Repeat("a", 2*maxHeaders) + "\r\n\r\n",
		"a long path":                        "GET " + members + "?continue=" + strings.Repeat("a", maxURI) + " HTTP/1.1\r\n" + asPage + "\r\n",
	})
}

// smuggle sends bytes, and verifies that they are rejected and do not reach the hub.
func (f *fixture) smuggle(all map[string]string) {
	for name, sent := range all {
		f.t.Run(name, func(t *testing.T) {
			before, _ := f.hub.requests()
			connection, err := net.Dial("tcp", f.host)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = connection.Close() }()
			_ = connection.SetDeadline(time.Now().Add(await.Limit))
			_, _ = io.WriteString(connection, sent)
			_ = connection.(*net.TCPConn).CloseWrite()
			line, err := bufio.NewReader(connection).ReadString('\n')
			if err == nil && !strings.HasPrefix(line, "HTTP/1.1 4") && !strings.HasPrefix(line, "HTTP/1.0 4") && !strings.HasPrefix(line, "HTTP/1.1 505") {
				t.Errorf("it is answered with %q", line)
			}
			if after, _ := f.hub.requests(); len(after) != len(before) {
				t.Errorf("the hub was asked %s", after[len(after)-1].RequestURI)
			}
		})
	}
}

func TestAttack_TokenIsSingleUseAndExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions()
		if _, _, ok := s.redeem(""); ok {
			t.Error("no token is good before there is one")
		}
		first := s.newToken()
		second := s.newToken()
		for name, token := range map[string]string{"none": "", "the one before": first, "a part": second[:len(second)-1], "more": second + "A"} {
			if _, _, ok := s.redeem(token); ok {
				t.Errorf("%s: it is taken", name)
			}
		}
		cookie, key, ok := s.redeem(second)
		if !ok || !s.valid(cookie, key) || s.valid(second, key) || s.valid("", key) || s.valid(cookie, "") || s.valid(cookie, cookie) || cookie == second || key == cookie {
			t.Fatal("the last token is to be good, and to give a cookie that is another secret")
		}
		if _, _, ok := s.redeem(second); ok {
			t.Error("a token is taken twice")
		}
		late := s.newToken()
		time.Sleep(TokenTTL)
		if _, _, ok := s.redeem(late); ok {
			t.Errorf("a token is taken after %s", TokenTTL)
		}

		time.Sleep(SessionTTL - TokenTTL)
		if !s.valid(cookie, key) {
			t.Error("a browser is not let in until its time is over")
		}
		time.Sleep(SessionTTL)
		if !s.valid(cookie, key) {
			t.Error("a browser that asks is not let in any more")
		}
		time.Sleep(SessionTTL + 1)
		if s.valid(cookie, key) {
			t.Errorf("a browser is let in that has not asked for %s", SessionTTL)
		}

		var let [][2]string
		for range maxSessions + 1 {
			cookie, key, _ := s.redeem(s.newToken())
			let = append(let, [2]string{cookie, key})
		}
		if s.valid(let[0][0], let[0][1]) || !s.valid(let[1][0], let[1][1]) || len(s.browsers) != maxSessions {
			t.Errorf("%d browsers are let in, not the last %d", len(s.browsers), maxSessions)
		}
	})
}

// TestSession_CookieAttributes verifies that scripts cannot read the cookie, and that it is not sent for other sites.
func TestSession_CookieAttributes(t *testing.T) {
	f := start(t)
	token := f.token()
	a := f.do(f.request("POST", "/session", `{"token":"`+token+`"}`))
	set := a.header.Get("Set-Cookie")
	for _, want := range []string{"kubectl-hub-ui-" + f.port() + "=", "; HttpOnly", "; SameSite=Strict", "; Path=/"} {
		if !strings.Contains(set, want) {
			t.Errorf("the cookie is %q, without %q", set, want)
		}
	}
	if strings.Contains(set, token) || strings.Contains(set, "Expires") || strings.Contains(set, "Max-Age") || strings.Contains(set, "Domain") {
		t.Errorf("the cookie is %q", set)
	}
	f.refused("the token again", f.request("POST", "/session", `{"token":"`+token+`"}`), http.StatusUnauthorized)
	if a := f.do(f.request("GET", members, "", "Cookie", "x=y")); a.status.Reason != ReasonNoSession {
		t.Errorf("the page cannot tell it from what the hub says: %s", a.body)
	}
}
