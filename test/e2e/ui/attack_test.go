// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

const members = "/hub/apis/view.clusterhub.dev/v1alpha1/clustersetmembers"

// evil is a site on this machine that keeps what a browser sends it.
type evil struct {
	*httptest.Server
	mu  sync.Mutex
	got []string
}

func newEvil(t *testing.T, page string) *evil {
	t.Helper()
	e := &evil{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		e.got = append(e.got, fmt.Sprint(r.URL, r.Header))
		e.mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, page)
	}))
	t.Cleanup(e.Close)
	return e
}

// called is the site by another name.
func (e *evil) called(name string) string {
	_, port, _ := net.SplitHostPort(e.Listener.Addr().String())
	return "http://" + name + ":" + port
}

// try has a page of another site ask for something, in all the ways that a page has, and says what it could read.
const try = `(async () => {
  const target = %s, read = [];
  const attempt = async (name, f) => { try { const v = await f(); if (v) read.push(name + ": " + v); } catch {} };
  const json = {"Content-Type": "application/json"};
  for (const path of ["/session", %s, "/", "/app.js"]) {
    for (const credentials of ["include", "omit"]) {
      await attempt("fetch " + path, async () => (await fetch(target + path, {credentials})).text());
      await attempt("fetch with a header " + path, async () => (await fetch(target + path, {credentials, headers: json})).text());
      await attempt("post " + path, async () => (await fetch(target + path, {credentials, method: "POST", body: "{}", headers: json})).text());
      await attempt("delete " + path, async () => (await fetch(target + path, {credentials, method: "DELETE"})).text());
    }
    await attempt("opaque " + path, async () => { await fetch(target + path, {mode: "no-cors", credentials: "include", method: "POST", body: "{}"}); });
    await attempt("image " + path, () => new Promise((done) => { const i = new Image(); i.onload = () => done("loads"); i.onerror = () => done(""); i.src = target + path; }));
    await attempt("script " + path, () => new Promise((done) => { const s = document.createElement("script"); s.onload = () => done("loads"); s.onerror = () => done(""); s.src = target + path; document.head.append(s); }));
    await attempt("style " + path, () => new Promise((done) => { const s = document.createElement("link"); s.rel = "stylesheet"; s.onload = () => done("loads"); s.onerror = () => done(""); s.href = target + path; document.head.append(s); }));
    await attempt("frame " + path, () => new Promise((done) => { const f = document.createElement("iframe"); f.onload = () => { try { done(f.contentDocument.body.innerText); } catch { done(""); } }; f.src = target + path; document.body.append(f); }));
    await attempt("form " + path, () => new Promise((done) => { const f = document.createElement("form"), i = document.createElement("iframe"); i.name = "f" + Math.random(); f.target = i.name; f.method = "POST"; f.enctype = "text/plain"; f.action = target + path; i.onload = () => { try { done(i.contentDocument.body.innerText); } catch { done(""); } }; document.body.append(i, f); f.submit(); }));
  }
  await attempt("socket", () => new Promise((done) => { const s = new WebSocket(target.replace("http", "ws") + %[2]s); s.onopen = () => done("opens"); s.onerror = () => done(""); }));
  await attempt("events", () => new Promise((done) => { const s = new EventSource(target + %[2]s, {withCredentials: true}); s.onopen = () => done("opens"); s.onerror = () => { s.close(); done(""); }; }));
  return read;
})()`

func attempts(target string) string {
	at, _ := json.Marshal(target)
	path, _ := json.Marshal(members)
	return fmt.Sprintf(try, at, path)
}

// A browser that is let in opens another site, beside the page and on another port of the same address. That site gets nothing.
func TestAttack_OtherSiteReadsAndChangesNothing(t *testing.T) {
	h := harness.Hub(t)
	s := serve(t, h, "")
	b := open(t, s, "/")
	if got := eval[int](b, `fetch("`+members+`?limit=1", {headers: {"X-Page-Key": localStorage.getItem("page-key") ?? ""}}).then((r) => r.status)`); got != http.StatusOK {
		t.Fatalf("the page itself gets %d", got)
	}
	if read := eval[[]string](b, attempts(s.url)); len(read) < 4 {
		t.Fatalf("the attempts find only %q where all is allowed", read)
	}
	site := newEvil(t, "<!doctype html><title>evil</title><body>evil")
	for name, at := range map[string]string{"another site": site.called("evil.example"), "another port": site.URL} {
		b.goTo(at)
		b.waitText("evil")
		if read := eval[[]string](b, attempts(s.url)); len(read) > 0 {
			t.Errorf("%s reads %q", name, read)
		}
	}
	// It is still let in, and nothing of what was sent has ended that.
	b.goTo(s.url + "/")
	if got := eval[int](b, `fetch("`+members+`?limit=1", {headers: {"X-Page-Key": localStorage.getItem("page-key") ?? ""}}).then((r) => r.status)`); got != http.StatusOK {
		t.Errorf("the page gets %d after another site", got)
	}
}

// A site whose name leads to this machine (DNS rebinding) is of the same origin as what answers there; so nothing does.
func TestAttack_DNSRebinding(t *testing.T) {
	s := serve(t, harness.Hub(t), "")
	port := s.url[strings.LastIndex(s.url, ":")+1:]
	b := newTab(t, 800, 600)
	b.goTo("http://rebind.example:" + port + "/")
	b.waitText("this server has another name")
	for _, path := range []string{"/session", members, "/app.js"} {
		if got := eval[int](b, `fetch("`+path+`", {headers: {"X-Page-Key": localStorage.getItem("page-key") ?? ""}}).then((r) => r.status)`); got != http.StatusForbidden {
			t.Errorf("%s: a site of another name gets %d", path, got)
		}
	}
}

// The secret is in no history, referrer, cookie that a script reads, output or log, and is good once.
func TestAttack_SecretDoesNotLeak(t *testing.T) {
	s := serve(t, harness.Hub(t), "", "-v=10")
	link := s.link(t)
	_, token, _ := strings.Cut(link, "#token=")
	b := newTab(t, 800, 600)
	b.goTo(link)
	b.wait("the secret is taken away", `!location.href.includes("token")`)
	site := newEvil(t, "<!doctype html><title>evil</title><body>evil")
	eval[bool](b, `(() => { const a = document.createElement("a"); a.href = "`+site.called("evil.example")+`/"; document.body.append(a); a.click(); return true; })()`)
	b.waitText("evil")
	site.mu.Lock()
	got := strings.Join(site.got, "\n")
	site.mu.Unlock()
	if strings.Contains(got, "Referer") || strings.Contains(got, token) {
		t.Errorf("a site that the page leads to gets %s", got)
	}
	b.goTo(s.url + "/")
	if cookies := eval[string](b, `document.cookie`); cookies != "" {
		t.Errorf("scripts read %q", cookies)
	}
	if entries := eval[string](b, `JSON.stringify([location.href, Object.entries(localStorage), Object.entries(sessionStorage), performance.getEntries().map((e) => e.name)])`); strings.Contains(entries, token) {
		t.Errorf("the browser keeps %s", entries)
	}
	if said := s.errOut.String(); strings.Contains(said, token) || !strings.Contains(said, "clustersetmembers") && !strings.Contains(said, "GET") {
		t.Errorf("the log is:\n%s", said)
	}
	other := newTab(t, 800, 600)
	other.goTo(link)
	if got := eval[int](other, `fetch("`+members+`", {headers: {"X-Page-Key": localStorage.getItem("page-key") ?? ""}}).then((r) => r.status)`); got != http.StatusUnauthorized {
		t.Errorf("another browser with the same link gets %d", got)
	}
	other.goTo(s.link(t)) // by Enter
	other.letIn()
	if got := eval[int](other, `fetch("`+members+`", {headers: {"X-Page-Key": localStorage.getItem("page-key") ?? ""}}).then((r) => r.status)`); got != http.StatusOK {
		t.Errorf("another browser with another link gets %d", got)
	}
}

// A browser is opened by a file that leads to the link: that must do with all that the server asks of a browser.
func TestOpen_FileOpensPage(t *testing.T) {
	s := serve(t, harness.Hub(t), "")
	file := filepath.Join(t.TempDir(), "open.html")
	link := s.link(t)
	if err := os.WriteFile(file, []byte(`<!doctype html><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url=`+link+`">`), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newTab(t, 800, 600)
	b.goTo("file://" + file)
	b.wait("the page is opened", `location.origin === "`+s.url+`" && !location.hash.includes("token")`)
	status := `fetch("` + members + `?limit=1", {headers: {"X-Page-Key": localStorage.getItem("page-key") ?? ""}}).then((r) => r.status)`
	b.wait("the browser is let in", `document.readyState === "complete" && (window.got ??= (`+status+`.then((v) => window.got = v === 200 || undefined), undefined)) === true`)
	// A view by its address, and again.
	b.goTo(s.url + "/v/sets")
	eval[bool](b, `(() => { window.old = true; location.reload(); return true; })()`)
	b.wait("it is loaded again", `!window.old && document.readyState === "complete" && location.pathname === "/v/sets"`)
	if got := eval[int](b, status); got != http.StatusOK {
		t.Errorf("after loading the page again it gets %d", got)
	}
}

// Each kind of ours that a hub serves is passed on, and none of its subresources but what a placement is explained by.
func TestProxy_PassesAllKinds(t *testing.T) {
	h := harness.Hub(t)
	b := open(t, serve(t, h, ""), "/")
	lists, err := harness.Kube(t, h.AdminConfig()).Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, list := range lists {
		ours := false
		for _, group := range []string{"open-cluster-management.io", "clusterhub.dev", "openmcp.cloud"} {
			ours = ours || strings.Contains(list.GroupVersion, group)
		}
		for _, r := range list.APIResources {
			path := "/hub/apis/" + list.GroupVersion + "/" + r.Name + "?limit=1"
			readable := strings.Contains(fmt.Sprint(r.Verbs), "list")
			switch {
			case ours && readable:
				asked++
				if got := eval[int](b, `fetch("`+path+`", {headers: {"X-Page-Key": localStorage.getItem("page-key") ?? ""}}).then((r) => r.status)`); got != http.StatusOK {
					t.Errorf("%s: the page gets %d", path, got)
				}
			case list.GroupVersion == "v1" && r.Name == "secrets":
				asked++
				if got := eval[int](b, `fetch("/hub/api/v1/secrets?limit=1", {headers: {"X-Page-Key": localStorage.getItem("page-key") ?? ""}}).then((r) => r.status)`); got != http.StatusForbidden {
					t.Errorf("the page gets Secrets: %d", got)
				}
			}
		}
	}
	if asked < 10 {
		t.Errorf("only %d kinds were asked for", asked)
	}
}

// What has started the server ends: a script, or a terminal.
func TestProcess_EndsWithItsParent(t *testing.T) {
	plugin := harness.Plugin{Kubeconfig: harness.Hub(t).AdminKubeconfig()}
	command := plugin.Command(t, "ui", "--no-browser")
	out := filepath.Join(t.TempDir(), "out")
	parent := exec.CommandContext(t.Context(), "sh", "-c", `"$0" ui --no-browser >"$1" 2>&1 & while ! grep -q token= "$1"; do sleep 0.05; done`, command.Path, out)
	parent.Env = command.Env
	if err := parent.Run(); err != nil {
		t.Fatal(err)
	}
	said := string(harness.Must(os.ReadFile(out))(t))
	at := strings.Index(said, "http://127.0.0.1:")
	address, _, _ := strings.Cut(said[at+len("http://"):], "/")
	harness.Eventually(t, "the server ends", func(context.Context) (bool, error) {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return true, nil
		}
		return false, connection.Close()
	})
}
