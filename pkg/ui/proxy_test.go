// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/test/await"
)

// TestProxy_SendsRequestAsUser verifies that a request to the hub has only the path, parameters and accepted formats of the browser's request,
// and all credentials of the user.
func TestProxy_SendsRequestAsUser(t *testing.T) {
	f := start(t)
	cookie := f.letIn()
	headers := []string{"Cookie", cookie}
	for _, name := range []string{"Authorization", "Impersonate-User", "Impersonate-Group", "Impersonate-Extra-A", "X-Remote-User", "X-Forwarded-For",
		"X-Http-Method-Override", "Referer", "Forwarded", "Range", "Accept-Encoding", "Accept-Language", "User-Agent", "Te", "Traceparent", "If-None-Match"} {
		headers = append(headers, name, "of-the-browser")
	}
	a := f.do(f.request("GET", members+"?limit=5", "", headers...))
	if a.code != http.StatusOK {
		t.Fatalf("got %d: %s", a.code, a.body)
	}
	body := `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","spec":{"namespace":"a"}}`
	f.do(f.request("POST", "/hub/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", body, headers...))

	asked, bodies := f.hub.requests()
	if len(asked) != 2 || asked[0].RequestURI != "/clusters/a"+strings.TrimPrefix(members, "/hub")+"?limit=5" || bodies[1] != body {
		t.Fatalf("the hub is asked %v %v", asked, bodies)
	}
	for _, r := range asked {
		for name, values := range r.Header {
			if strings.Contains(fmt.Sprint(values), "of-the-browser") || strings.Contains(fmt.Sprint(values), cookie) {
				t.Errorf("the hub gets the browser's %s: %s", name, values)
			}
			if !slices.Contains([]string{"Accept", "Accept-Encoding", "Authorization", "Content-Length", "Content-Type", "Impersonate-Group", "Impersonate-User", "User-Agent"}, name) {
				t.Errorf("the hub gets %s: %s", name, values)
			}
		}
		if r.Header.Get("Authorization") != "Bearer "+userToken || r.Header.Get("Impersonate-User") != "dana" || r.Header.Get("Impersonate-Group") != "team" ||
			r.Header.Get("User-Agent") != "kubectl-hub" {
			t.Errorf("the hub gets %v", r.Header)
		}
	}
	want := []string{"Cache-Control", "Content-Length", "Content-Security-Policy", "Content-Type", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Date",
		"Referrer-Policy", "X-Content-Type-Options", "X-Frame-Options"}
	for name := range a.header {
		if !slices.Contains(want, name) {
			t.Errorf("the browser gets %s: %s", name, a.header[name])
		}
	}
	if a.header.Get("Cache-Control") != "no-store" || a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("the browser gets %v", a.header)
	}
	if strings.Contains(a.body+fmt.Sprint(a.header), userToken) {
		t.Error("the browser gets the user's token")
	}
}

// TestProxy_RequestsJSON verifies that the hub responds in JSON, whatever formats the browser accepts: others could not be checked.
func TestProxy_RequestsJSON(t *testing.T) {
	f := start(t)
	cookie := f.letIn()
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io"
	wants := map[string]string{
		"": "application/json", "*/*": "application/json", "application/vnd.kubernetes.protobuf": "application/json", "text/html,application/json": "application/json",
		"application/json;as=Table;v=v1beta1;g=meta.k8s.io": "application/json", "application/json; as=Table; v=v1; g=meta.k8s.io": table + ",application/json",
	}
	for header, want := range wants {
		f.do(f.request("GET", members, "", "Cookie", cookie, "Accept", header))
		asked, _ := f.hub.requests()
		if len(asked) == 0 {
			t.Fatalf("Accept %q: no request reaches the hub", header)
		}
		if got := asked[len(asked)-1].Header.Get("Accept"); got != want {
			t.Errorf("Accept %q of the browser is %q in the request to the hub, want %q", header, got, want)
		}
	}
}

// TestProxy_Answers verifies that responses of the hub are passed on unchanged, and that others are not passed on.
func TestProxy_Answers(t *testing.T) {
	f := start(t)
	cookie := f.letIn()
	status := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"%s","code":%d}`
	for name, test := range map[string]struct {
		code, want        int
		kind, body, shown string
		header            string
	}{
		"forbidden":           {403, 403, "application/json", fmt.Sprintf(status, "Forbidden", 403), `"reason":"Forbidden"`, ""},
		"credentials expired": {401, 401, "application/json", fmt.Sprintf(status, "Unauthorized", 401), `"reason":"Unauthorized"`, ""},
		"a plain 401":         {401, 401, "text/plain", "secret", `"reason":"Unauthorized"`, ""},
		"a plain 404":         {404, 404, "text/plain", "404 page not found", `"reason":"NotFound"`, ""},
		"a gateway":           {502, 502, "text/html", "<script>alert(1)</script>", "says only Bad Gateway", ""},
		"a page to log in":    {200, 502, "text/html", "<script>alert(1)</script>", "something between answers in its place", ""},
		"a script":            {200, 502, "text/javascript", "alert(1)", "something between answers in its place", ""},
		"no type":             {200, 502, "", "{}", "something between answers in its place", ""},
		"led elsewhere":       {302, 502, "application/json", "{}", "something between answers in its place", "https://evil.example/"},
		"another protocol":    {101, 502, "application/json", "", "something between answers in its place", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f.hub.mu.Lock()
			f.hub.answer = func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = nil
				if test.kind != "" {
					w.Header().Set("Content-Type", test.kind)
				}
				if test.header != "" {
					w.Header().Set("Location", test.header)
				}
				if test.code == http.StatusSwitchingProtocols {
					w.Header().Set("Upgrade", "websocket")
					w.Header().Set("Connection", "Upgrade")
				}
				w.WriteHeader(test.code)
				_, _ = io.WriteString(w, test.body)
			}
			f.hub.mu.Unlock()
			a := f.do(f.request("GET", members, "", "Cookie", cookie))
			if a.code != test.want || !strings.Contains(a.body, test.shown) || a.header.Get("Content-Type") != "application/json" || a.header.Get("Location") != "" ||
				strings.Contains(a.body, "<script>") || strings.Contains(a.body, "secret") {
				t.Errorf("the browser gets %d %v %s", a.code, a.header, a.body)
			}
		})
	}
	f.hub.Close()
	a := f.do(f.request("GET", members, "", "Cookie", cookie))
	if a.code != http.StatusServiceUnavailable || a.status.Reason != metav1.StatusReasonServiceUnavailable || !strings.Contains(a.status.Message, f.hub.URL) {
		t.Errorf("without a hub, the browser gets %d %s", a.code, a.body)
	}
}

// TestProxy_Watches verifies that a watch is streamed, ends at the hub when the browser disconnects, and ends when the server stops.
func TestProxy_Watches(t *testing.T) {
	f := start(t)
	cookie := f.letIn()
	next, gone := make(chan string), make(chan struct{}, 2)
	f.hub.answer = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case line := <-next:
				_, _ = io.WriteString(w, line+"\n")
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				gone <- struct{}{}
				return
			}
		}
	}
	watch := func() (*http.Response, *bufio.Reader) {
		response, err := new(http.Transport).RoundTrip(f.request("GET", members+"?watch=true", "", "Cookie", cookie))
		if err != nil {
			t.Fatal(err)
		}
		return response, bufio.NewReader(response.Body)
	}
	response, lines := watch()
	for _, line := range []string{"one", "two"} {
		next <- line
		if got, err := lines.ReadString('\n'); got != line+"\n" {
			t.Fatalf("the browser gets %q: %v", got, err)
		}
	}
	_ = response.Body.Close()
	<-gone

	response, lines = watch()
	f.stop()
	if _, err := lines.ReadString('\n'); err == nil {
		t.Error("a watch goes on when the server has ended")
	}
	_ = response.Body.Close()
	<-gone
	if err := <-f.ended; err != nil {
		t.Errorf("the server ends with %v", err)
	}
}

// TestProxy_InterruptedResponse verifies that an interrupted response does not look complete.
func TestProxy_InterruptedResponse(t *testing.T) {
	f := start(t)
	cookie := f.letIn()
	f.hub.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items":[]}`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	response, err := new(http.Transport).RoundTrip(f.request("GET", members, "", "Cookie", cookie))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(response.Body); err == nil {
		t.Error("the browser takes a part for the whole")
	}
	_ = response.Body.Close()
}

func TestProxy_Questions(t *testing.T) {
	f := start(t)
	cookie := f.letIn()
	const at = "/hub/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	for name, test := range map[string]struct {
		body, contentType string
		code              int
	}{
		"another kind":         {`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview"}`, "application/json", 400},
		"another group":        {`{"apiVersion":"v1","kind":"SelfSubjectAccessReview"}`, "application/json", 400},
		"a list":               {`[]`, "application/json", 400},
		"nothing":              {``, "application/json", 400},
		"two objects":          {`{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview"}{}`, "application/json", 400},
		"YAML":                 {"kind: SelfSubjectAccessReview", "application/yaml", 415},
		"a form":               {"a=b", "application/x-www-form-urlencoded", 415},
		"a form with a file":   {"a=b", "multipart/form-data", 415},
		"plain text":           {`{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview"}`, "text/plain", 415},
		"a type without sense": {`{}`, "application/json;;", 415},
		"too much":             {`{"a":"` + strings.Repeat("a", maxQuestion) + `"}`, "application/json", 413},
	} {
		f.refused(name, f.request("POST", at, test.body, "Cookie", cookie, "Content-Type", test.contentType), test.code)
	}
	f.refused("a long token", f.request("POST", "/session", `{"token":"`+strings.Repeat("a", maxToken)+`"}`), http.StatusRequestEntityTooLarge)
	f.refused("a session without sense", f.request("POST", "/session", `{"token":1}`), http.StatusBadRequest)
	f.refused("a session with parameters", f.request("POST", "/session?a", `{}`), http.StatusBadRequest)
	f.refused("another method", f.request("DELETE", "/session", ""), http.StatusMethodNotAllowed)
}

// TestAttack_ConcurrentRequestsAreLimited verifies that a client beyond the limit gets an error, and that later clients are served.
func TestAttack_ConcurrentRequestsAreLimited(t *testing.T) {
	f := start(t)
	cookie := f.letIn()
	f.hub.answer = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	var open []*http.Response
	for range maxRequests {
		response, err := new(http.Transport).RoundTrip(f.request("GET", members+"?watch=1", "", "Cookie", cookie))
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%d: %v %v", len(open), response, err)
		}
		open = append(open, response)
	}
	f.refused("one more", f.request("GET", members, "", "Cookie", cookie), http.StatusTooManyRequests)
	for _, response := range open {
		_ = response.Body.Close()
	}
	f.hub.mu.Lock()
	f.hub.answer = nil
	f.hub.mu.Unlock()
	soon(t, "there is room again", func() bool { return f.do(f.request("GET", members, "", "Cookie", cookie)).code == http.StatusOK })

	var idle []net.Conn
	for range maxConnections {
		connection, err := net.Dial("tcp", f.host)
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, connection)
	}
	for _, connection := range idle {
		_ = connection.Close()
	}
	if a := f.do(f.request("GET", members, "", "Cookie", cookie)); a.code != http.StatusOK {
		t.Errorf("after connections that asked for nothing, the page gets %d", a.code)
	}
}

// TestAttack_SlowBody verifies that the server does not wait for a slow body.
func TestAttack_SlowBody(t *testing.T) {
	f := start(t, func(c *Options) { c.askTimeout = 100 * time.Millisecond })
	for name, sent := range map[string]string{
		"the headers": "POST /session HTTP/1.1\r\nHost: " + f.host + "\r\n",
		"the body":    "POST /session HTTP/1.1\r\nHost: " + f.host + "\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			connection, err := net.Dial("tcp", f.host)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = connection.Close() }()
			_ = connection.SetDeadline(time.Now().Add(await.Limit))
			_, _ = io.WriteString(connection, sent)
			if _, err := io.ReadAll(connection); err != nil {
				t.Errorf("the server waits: %v", err)
			}
		})
	}
}
