// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// browserEnv names the browser that has to be there. Without it, tests are left out where none is.
const browserEnv = "CLUSTERHUB_TEST_BROWSER"

// browser is the one that the tests share, each with cookies of its own.
var browser struct {
	once   sync.Once
	ctx    context.Context
	cancel []context.CancelFunc
	err    error
}

func startBrowser(program string) {
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(program),
		chromedp.NoSandbox, // tests may run as root
		chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("font-render-hinting", "none"),
		// Sites of these names are on this machine: other sites, and one whose name leads here.
		chromedp.Flag("host-resolver-rules", "MAP *.example 127.0.0.1"))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, endContext := chromedp.NewContext(allocator)
	browser.ctx, browser.cancel = ctx, []context.CancelFunc{endContext, end}
	browser.err = chromedp.Do(ctx)
}

func endBrowser() {
	for _, cancel := range browser.cancel {
		cancel()
	}
}

// tab is one of a browser that has no cookies but its own.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// newTab opens an empty tab of this size, in a window without cookies.
func newTab(t *testing.T, width, height int64) *tab {
	t.Helper()
	wanted := os.Getenv(browserEnv)
	program, err := exec.LookPath(cmp.Or(wanted, "chromium-headless-shell"))
	if err != nil && wanted == "" {
		program, err = exec.LookPath("chromium")
	}
	switch {
	case err != nil && wanted != "":
		t.Fatalf("%s=%s: %v", browserEnv, wanted, err)
	case err != nil:
		t.Skipf("there is no browser: install chromium-headless-shell, or set %s", browserEnv)
	}
	browser.once.Do(func() { startBrowser(program) })
	if browser.err != nil {
		t.Fatalf("%s cannot be started: %v", program, browser.err)
	}
	ctx, cancel := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil { // what makes the tab must not have an end
		t.Fatal(err)
	}
	b.do("the size", chromedp.EmulateViewport(width, height))
	return b
}

// open opens the page in a new tab by its link, and then one of its views.
func open(t *testing.T, s *served, path string) *tab {
	t.Helper()
	b := newTab(t, 1280, 900)
	b.goTo(s.link(t))
	b.letIn()
	if path != "/" {
		b.goTo(s.url + path)
	}
	return b
}

// letIn waits until a link has let the page in: until then, the page has no key.
func (b *tab) letIn() {
	b.t.Helper()
	b.wait("the secret is taken away, and the page is let in", `!location.hash.includes("token") && localStorage.getItem("page-key")`)
}

// do does something in the tab, in time.
func (b *tab) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, harness.Timeout)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// goTo navigates as a user does who types an address.
func (b *tab) goTo(address string) {
	b.t.Helper()
	shown, _, _ := strings.Cut(address, "#")
	b.do("opening "+shown, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		done, err := cdp.Call(ctx, target, page.Navigate, page.NavigateParams{URL: address, TransitionType: page.TransitionTypeTyped})
		if err == nil && done.ErrorText != "" {
			return errors.New(done.ErrorText)
		}
		return err
	}))
	b.wait("it is loaded", `document.readyState === "complete"`)
}

// eval evaluates an expression in the page; that of a promise is waited for.
func eval[T any](b *tab, expression string) (value T) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, harness.Timeout)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, awaited))
	if err != nil {
		b.t.Fatalf("%s: %v", expression[:min(len(expression), 300)], err)
	}
	return value
}

// awaited has the value of a promise waited for.
func awaited(p *runtime.EvaluateParams) {
	yes := true
	p.AwaitPromise = &yes
}

// wait waits until an expression is true.
func (b *tab) wait(what, expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, harness.Timeout)
	defer cancel()
	for {
		// While a tab navigates, there is nothing to ask.
		holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("(() => { try { return !!("+expression+") } catch (e) { return false } })()"))
		if err == nil && holds {
			return
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("%s: not after %s: the page says:\n%s", what, harness.Timeout, b.shown())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// waitText waits until the page shows all texts.
func (b *tab) waitText(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		quoted, _ := json.Marshal(text)
		b.wait("it shows "+text, "document.body.innerText.includes("+string(quoted)+")")
	}
}

// shown is the text of the page.
func (b *tab) shown() string {
	ctx, cancel := context.WithTimeout(b.ctx, harness.Timeout)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return text
}

// screenshot writes what the tab shows, as PNG.
func (b *tab) screenshot(file string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, harness.Timeout)
	defer cancel()
	data := harness.Must(chromedp.Run(ctx, chromedp.CaptureScreenshot()))(b.t)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
