// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/json"
	"fmt"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// markup would run a program if it were read as HTML.
const markup = `<img src=x onerror="window.broken=1"><script>window.broken=1</script>`

// quoted is a text as JavaScript writes it.
func quoted(text string) string {
	data, _ := json.Marshal(text)
	return string(data)
}

// keys presses keys, one after the other.
func (b *tab) keys(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		b.do("a key", chromedp.KeyEvent(key))
	}
}

// tabTo presses Tab until the focus is on what the expression says of the focused element e.
func (b *tab) tabTo(expression string) {
	b.t.Helper()
	for range 60 {
		if eval[bool](b, `((e) => Boolean(`+expression+`))(document.activeElement)`) {
			return
		}
		b.keys(kb.Tab)
	}
	b.t.Fatalf("the keyboard does not come to what has %s", expression)
}

const titleHasFocus = `document.activeElement === document.querySelector("h1")`

func TestUsable_ByKeyboardAlone(t *testing.T) {
	s := serve(t, fleet(t), "")
	b := open(t, s, "/")
	b.view(s, "/v/clusters?l=env", "tokyo-1")
	// The first key leads past the navigation.
	b.keys(kb.Tab)
	b.wait("the first is the link to the content", `document.activeElement.className === "skip"`)
	b.keys(kb.Enter)
	b.wait("the content has the focus", `document.activeElement.id === "main"`)
	b.waitText("tokyo-1")

	b.tabTo(`e.id === "filter-l"`)
	b.keys("env in (staging)", kb.Enter) // in the place of what was there, which the key has selected
	b.wait("the filter is in the address", `new URLSearchParams(location.search).get("l") === "env in (staging)"`)
	b.wait("the title has the focus", titleHasFocus)
	b.waitText("toronto-1")
	b.wait("what does not match is gone", `!document.body.innerText.includes("tokyo-1")`)

	b.tabTo(`e.textContent === "toronto-1"`)
	b.keys(kb.Enter)
	b.wait("it is a page of its own", `location.pathname === "/v/clusters/toronto-1" && `+titleHasFocus)
	if title := eval[string](b, "document.title"); title != "Cluster toronto-1 · Clusterhub" {
		t.Errorf("the title of the window is %q", title)
	}
	b.wait("it is the way back", `(history.back(), true)`)
	b.wait("the list is there again", `location.pathname === "/v/clusters" && `+titleHasFocus)
	b.waitText("toronto-1")
	if current := eval[string](b, `[...document.querySelectorAll("[aria-current=page]")].map((e) => e.textContent).join()`); current != "Clusters" {
		t.Errorf("the navigation says that the page is %q", current)
	}
	if unreachable := eval[[]string](b, `[...document.querySelectorAll("a, button, input, select")].filter((e) => e.tabIndex < 0).map((e) => e.outerHTML)`); len(unreachable) > 0 {
		t.Errorf("the keyboard does not reach %q", unreachable)
	}
}

func TestUsable_FollowsChanges(t *testing.T) {
	h := fleet(t)
	name := harness.Unique("live")
	s := serve(t, h, "")
	b := open(t, s, "/")
	b.view(s, "/v/clusters?l="+url.QueryEscape("live="+name), "There are no such clusters.", "Live.")
	if !eval[bool](b, `window.same = true`) {
		t.Fatal("the page cannot be marked")
	}
	harness.NewManagedCluster(t, name, map[string]string{"live": name})
	b.waitText(name, "1 cluster: 1 waiting to be accepted.")

	// A user who is in a row that changes stays where they are.
	b.tabTo(`e.textContent === ` + quoted(name))
	harness.MustKubectlOf(t, h, "", "patch", "managedcluster", name, "--type=merge", "-p", `{"spec":{"hubAcceptsClient":true}}`)
	b.waitText("1 cluster: 1 unknown.")
	b.wait("the focus stays", `document.activeElement.textContent === `+quoted(name))

	harness.MustKubectlOf(t, h, "", "label", "managedcluster", name, "live-")
	b.waitText("There are no such clusters.")
	b.wait("it is the same page", "window.same")
}

func TestUsable_MarkupStaysText(t *testing.T) {
	h := fleet(t)
	name := harness.Unique("markup")
	harness.NewManagedCluster(t, name, map[string]string{"markup": name})
	status, _ := json.Marshal(map[string]any{"status": map[string]any{
		"clusterClaims": []map[string]string{{"name": "claim", "value": markup}},
		"conditions": []map[string]string{{
			"type": "ManagedClusterConditionAvailable", "status": "False", "reason": "Markup", "message": markup, "lastTransitionTime": "2026-01-12T08:00:00Z",
		}},
	}})
	harness.MustKubectlOf(t, h, "", "patch", "managedcluster", name, "--type=merge", "-p", `{"spec":{"hubAcceptsClient":true}}`)
	harness.MustKubectlOf(t, h, "", "patch", "managedcluster", name, "--subresource=status", "--type=merge", "-p", string(status))
	s := serve(t, h, "")
	b := open(t, s, "/")
	for _, path := range []string{"/v/clusters?l=markup=" + name, "/v/clusters/" + name} {
		b.view(s, path, name, markup)
		wantNoElements(b)
	}
	// A hub keeps markup out of labels, sets and names. The page does not rely on it: whatever the answer has is text.
	b.view(s, "/v/clusters?l=markup="+name, name)
	if !eval[bool](b, `(() => {
		const real = window.fetch;
		window.fetch = async (...of) => {
			const answer = await real(...of);
			if (String(of[0]).includes("watch=1")) return answer;
			const put = (v) => typeof v === "string" && v.includes("devset") ? `+quoted(markup)+` : v && typeof v === "object" ?
				(Array.isArray(v) ? v.map(put) : Object.fromEntries(Object.entries(v).map(([k, x]) => [k, put(x)]))) : v;
			return new Response(JSON.stringify(put(JSON.parse(await answer.text()))), {status: answer.status});
		};
		document.querySelector('nav a[href="/v/sets"]').click();
		return true;
	})()`) {
		t.Fatal("the answers cannot be changed")
	}
	b.waitText(markup, "apacset")
	wantNoElements(b)
}

// wantNoElements fails the test if the page has elements that only markup of others can have made.
func wantNoElements(b *tab) {
	b.t.Helper()
	if n := eval[int](b, `document.querySelectorAll("main img, main script, body img").length + (window.broken ?? 0)`); n != 0 {
		b.t.Errorf("the page has read a text as markup:\n%s", eval[string](b, "document.body.outerHTML"))
	}
}

func TestUsable_OnPhone(t *testing.T) {
	s := serve(t, fleet(t), "")
	b := open(t, s, "/")
	b.do("a phone", chromedp.EmulateViewport(360, 780))
	for path, text := range map[string]string{
		"/v/clusters?l=env": "toronto-1", "/v/placements/middleware/cache": "cache-decision-1", "/v/hub": "etcd-readiness", "/v/clusters/lab-1": "lab-1", "/v/rights": "Do everything",
	} {
		b.view(s, path, text)
		if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > 360 {
			t.Errorf("%s is %d pixels wide: a phone of 360 has to scroll sideways", path, wide)
		}
		b.wantAccessible()
	}
	b.view(s, "/v/clusters?l=env", "toronto-1")
	// Rows are cards with the names of the columns, and still rows of a table for a screen reader.
	if got := eval[string](b, `(() => { const td = document.querySelector("tbody td");
		return [getComputedStyle(td.parentElement).display, getComputedStyle(td, "::before").content, td.parentElement.getAttribute("role")].join() })()`); got != `block,"Available",row` {
		t.Errorf("expected cards with the name of the column, got %s", got)
	}
}

func TestUsable_ReadsOnlyWhatItShows(t *testing.T) {
	h := fleet(t)
	const more = 5
	set, _ := harness.NewFleet(t, 100+more)
	s := serve(t, h, "")
	b := open(t, s, "/")
	b.view(s, "/v/clusters?set="+set, "100 shown, there are more.", "Refreshed every 30 seconds.")
	asked := eval[[]string](b, `performance.getEntriesByType("resource").map((e) => e.name).filter((n) => n.includes("clustersetmembers"))`)
	if want := s.url + "/hub/apis/view.clusterhub.dev/v1alpha1/clustersetmembers?fieldSelector=" + url.QueryEscape("spec.clusterSet="+set) + "&limit=100"; len(asked) != 1 || asked[0] != want {
		t.Errorf("expected one request for what is shown, %s, and no watch of all of it; got %q", want, asked)
	}
	if !eval[bool](b, `(document.querySelector(".foot button").focus(), document.activeElement.textContent === "More")`) {
		t.Fatal("there is no button for more")
	}
	b.keys(kb.Enter)
	b.waitText(fmt.Sprintf("%d members: %[1]d waiting to be accepted.", 100+more), "Live.")
	if rows := eval[int](b, `document.querySelectorAll("tbody tr").length`); rows != 100+more {
		t.Errorf("expected %d rows, got %d", 100+more, rows)
	}
}
