// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hack has tests of its scripts.
package hack

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fakeGo says what go build -v says, and ends when there is a file beside it.
const fakeGo = `#!/bin/sh
echo "go: downloading k8s.io/api v0.1.0
go: downloading k8s.io/client-go v0.1.0
k8s.io/api/core/v1" >&2
while [ ! -e "$0.ends" ]; do sleep 0.01; done
[ "$1" = good ] || { printf '# example.com/x\nx.go:1: no such thing\n' >&2; exit 1; }
`

// TestProgress: a build says what it builds, for how long and how far it is, and not what go says unless that fails.
func TestProgress(t *testing.T) {
	for _, c := range []struct{ how, want, complains string }{
		{"good", `^( +our programs: building for \d+ s, \d modules downloaded, \d packages compiled\n)+ +our programs: built in \d+ s, 2 modules downloaded, 1 packages compiled\n$`, ""},
		{"bad", `^( +our programs: building for .*\n)+$`, "# example.com/x\nx.go:1: no such thing\n"},
	} {
		program := filepath.Join(t.TempDir(), "go")
		if err := os.WriteFile(program, []byte(fakeGo), 0o700); err != nil { //nolint:gosec // it is to be run
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "./progress.sh", "our programs", program, c.how)
		cmd.Env = append(os.Environ(), "PROGRESS_SECONDS=0")
		var complaints strings.Builder
		cmd.Stderr = &complaints
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := ""
		for lines := bufio.NewScanner(out); lines.Scan(); {
			said += lines.Text() + "\n"
			if err := os.WriteFile(program+".ends", nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := cmd.Wait(); (err == nil) != (c.complains == "") || complaints.String() != c.complains || !regexp.MustCompile(c.want).MatchString(said) {
			t.Errorf("%s: %v, it is said\n%s and complained\n%s", c.how, err, said, complaints.String())
		}
	}
}
