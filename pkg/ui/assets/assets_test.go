// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package assets_test

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/ui/assets"
)

// asMarkup matches functions that parse a text as HTML or as a script, which would run the content of a label. The strict policy of the server
// forbids some of them; the page uses none. The names are whole words, because other names may begin like them.
var asMarkup = regexp.MustCompile(`\b(innerHTML|outerHTML|insertAdjacentHTML|setHTML\w*|parseHTML\w*|DOMParser|createContextualFragment|srcdoc|` +
	`document\.write\w*|eval\(|Function\(|cssText|javascript:)`)

// fromElsewhere matches addresses of other sites, such as fonts, images and scripts.
var fromElsewhere = regexp.MustCompile(`(?i)(https?:)?//[a-z0-9]|@import|url\(`)

func TestNoHTMLIsInterpreted(t *testing.T) {
	if found := asMarkup.FindAll(read(t, "app.js"), -1); len(found) > 0 {
		t.Errorf("app.js has %q: text goes into the page by el and say of pkg/ui/web/dom.ts alone", found)
	}
	for _, bad := range []string{"e.innerHTML=x", `e.insertAdjacentHTML("beforeend",x)`, "document.writeln(x)", "new Function(x)", "f.srcdoc=x"} {
		if !asMarkup.MatchString(bad) {
			t.Errorf("%s would not be found", bad)
		}
	}
}

func TestNoExternalResources(t *testing.T) {
	for _, name := range []string{"index.html", "app.css", "app.js"} {
		content := read(t, name)
		if name == "app.js" {
			// The first line is a comment.
			_, content, _ = bytes.Cut(content, []byte("\n"))
		}
		if found := fromElsewhere.FindAll(content, -1); len(found) > 0 {
			t.Errorf("%s has %q: everything that the page needs is in it", name, found)
		}
	}
}

func TestContentSecurityPolicy(t *testing.T) {
	page := read(t, "index.html")
	if found := regexp.MustCompile(`(?i)<style|\sstyle=|\son\w+=|<script(>|\s+[^s][^>]*>)|<script[^>]*>[^<]`).FindAll(page, -1); len(found) > 0 {
		t.Errorf("index.html has %q: style-src 'self' and script-src 'self' let in files alone", found)
	}
	if found := regexp.MustCompile(`setAttribute\("(style|on\w+)"|\.style\b`).FindAll(read(t, "app.js"), -1); len(found) > 0 {
		t.Errorf("app.js has %q: use a class", found)
	}
}

func TestScriptIsSmallAndMarkedAsGenerated(t *testing.T) {
	script := read(t, "app.js")
	if line, _, _ := bytes.Cut(script, []byte("\n")); !regexp.MustCompile(`^// Code generated .* DO NOT EDIT\.$`).Match(line) {
		t.Errorf("expected that the first line says that the file is generated, got %q", line)
	}
	if len(script) > 60_000 {
		t.Errorf("expected at most 60000 bytes, got %d: the page is a few tables", len(script))
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := assets.FS.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
