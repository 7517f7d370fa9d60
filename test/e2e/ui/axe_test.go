// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// violation is what axe finds.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// violations are what axe finds in the page as it is: what keeps people out who use a keyboard or a screen reader, or who see little.
func (b *tab) violations() []violation {
	b.t.Helper()
	file := filepath.Join(harness.Root, "_output", "page", "node_modules", "axe-core", "axe.min.js")
	source, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatalf("axe is not there, run hack/ui-test.sh: %v", err)
	}
	// The page's own policy does not hold for what the debugger evaluates.
	eval[bool](b, string(source)+"; true")
	return eval[[]violation](b, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations)`)
}

// wantAccessible fails the test if axe finds anything.
func (b *tab) wantAccessible() {
	b.t.Helper()
	for _, v := range b.violations() {
		for _, n := range v.Nodes {
			b.t.Errorf("axe: %s: %s\n%s\n%s", v.ID, v.Help, n.HTML, n.Summary)
		}
	}
}

// axe is tried with what it has to find.
func TestAxe_DetectsFaults(t *testing.T) {
	t.Parallel()
	b := newTab(t, 400, 300)
	b.goTo("data:text/html,<title>x</title><img src='data:,'><input>")
	var ids []string
	for _, v := range b.violations() {
		ids = append(ids, v.ID)
	}
	for _, want := range []string{"html-has-lang", "image-alt", "label"} {
		if all := strings.Join(ids, " "); !strings.Contains(all, want) {
			t.Errorf("axe finds %s, and not %s", all, want)
		}
	}
}
