// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package detached

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/remote"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// shown is the command in docs/detached.md that begins so, and what it prints there.
func shown(t *testing.T, begins string) (args []string, prints string) {
	t.Helper()
	page := string(harness.Must(os.ReadFile(filepath.Join(harness.Root, "docs", "detached.md")))(t))
	_, after, found := strings.Cut(page, "\n$ "+begins)
	block, _, closed := strings.Cut(after, "\n```")
	if !found || !closed || strings.Contains(block, "\n$ ") {
		t.Fatalf("the documentation has no block with %q as its only command", begins)
	}
	command, prints, _ := strings.Cut(begins+strings.ReplaceAll(block, "\\\n", ""), "\n")
	return strings.Fields(command), prints
}

// wantShown compares what a command has said with what docs/detached.md shows, where some texts stand for others: in each pair one that is
// shown, and what it stands for.
func wantShown(t *testing.T, said, begins string, instead ...string) {
	t.Helper()
	_, prints := shown(t, begins)
	pattern := regexp.QuoteMeta(steady(t, prints))
	for i := 0; i < len(instead); i += 2 {
		pattern = strings.ReplaceAll(pattern, regexp.QuoteMeta(instead[i]), regexp.QuoteMeta(instead[i+1]))
	}
	// Tokens, certificates and times differ each time.
	pattern = regexp.MustCompile(`\w+…`).ReplaceAllString(pattern, `\S+`)
	pattern = regexp.MustCompile(`\d+-\d+-\d+T[\d:]+Z`).ReplaceAllString(pattern, `\S+`)
	if !regexp.MustCompile(`^` + pattern + `$`).MatchString(steady(t, said)) {
		t.Errorf("%s says\n%s\nand docs/detached.md shows\n%s", begins, steady(t, said), steady(t, prints))
	}
}

// steady is what a command says each time: without warnings, which are about this machine and its certificates, without what is waited
// for, and without what it installs, which the first command does, and the documentation leaves out.
func steady(t *testing.T, said string) string {
	t.Helper()
	installs := map[string]bool{"…": true}
	for _, object := range harness.Must(deploy.Operator{}.Objects())(t) {
		installs["Made "+remote.IDOf(object).String()] = true
	}
	var lines []string
	for line := range strings.Lines(said) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, "Warning: ") && !strings.HasPrefix(line, "Waiting for ") && !installs[line] {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
