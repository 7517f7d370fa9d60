// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package typing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/clusterhub/clusterhub/hack/docs/pages"
	"github.com/clusterhub/clusterhub/test/await"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestShell_KeepsState verifies that a command has the state that the previous one left.
func TestShell_KeepsState(t *testing.T) {
	s, code := newShell(t, t.TempDir(), "PATH="+os.Getenv("PATH")), 0
	for _, c := range []struct {
		typed, prints string
		code          int
	}{
		{"a=b # a comment", "", 0},
		{"mkdir new && cd new && basename \"$PWD\"", "new\n", 0},
		{"cat - > file <<EOF\nfrom $a\nEOF", "", 0},
		{"cat file; echo wrong >&2; (exit 7)", "from b\nwrong\n", 7},
		{"echo $?", "7\n", 0},
		{"printf 'no end'", "no end", 0},
		{"cat", "", 0},
		{"no-such-command 2>/dev/null", "", 127},
	} {
		var said string
		said, code = s.run(t, c.typed, code)
		if said != c.prints || code != c.code {
			t.Errorf("%s: %q and %d, want %q and %d", c.typed, said, code, c.prints, c.code)
		}
	}
}

// TestValues_AreOfSession verifies that replacements are values of words in the session, and are never empty.
func TestValues_AreOfSession(t *testing.T) {
	s := New(t, t.TempDir(), "PATH="+os.Getenv("PATH"))
	s.Types([]pages.Block{{Commands: []pages.Command{{Text: "token='a b'"}}}})
	for word, want := range map[string]string{`"$token"`: "a b", `"$(cut -d' ' -f2 <<<"$token")"`: "b", `"$none"`: "", `"$(false)"`: ""} {
		texts, err := s.values(pages.Block{Swaps: []pages.Swap{{Text: "eyJ…", Word: word}}})
		if len(texts) != 2 || texts[0] != "eyJ…" || want != "" && (texts[1] != want || err != nil) || want == "" && err == nil {
			t.Errorf("%s: %q, %v, want %q", word, texts, err, want)
		}
	}
}

// TestDiffers_ChecksExitCode verifies that a command succeeds, unless the page shows that it fails.
func TestDiffers_ChecksExitCode(t *testing.T) {
	for name, c := range map[string]struct {
		block, out string
		code       int
		differs    string
	}{
		"success":                      {block: "$ a\nb\n", out: "b"},
		"success without output":       {block: "$ a\n"},
		"failure without output":       {block: "$ a\n", code: 1, differs: "it has exited with 1, want 0"},
		"failure with any output":      {block: "$ a\n…\n", out: "Error: no", code: 1, differs: "it has exited with 1, want 0"},
		"failure with the output":      {block: "$ a\nb\n", out: "b", code: 3, differs: "it has exited with 3, want 0"},
		"other output":                 {block: "$ a\nb\n", out: "c", code: 1, differs: `want "b"`},
		"an error of kubectl hub":      {block: "$ a\nname a\nError: no\n", out: "name a\nError: no", code: 1},
		"an error of kubectl":          {block: "$ a\nerror: no\n", out: "error: no", code: 1},
		"an error of a server":         {block: "$ a\nError from server (Forbidden): no\n", out: "Error from server (Forbidden): no", code: 1},
		"an error of a server, alone":  {block: "$ a\nError from server: no\n", out: "Error from server: no", code: 1},
		"an invalid object":            {block: "$ a\nThe Cluster \"red\" is invalid: no\n", out: "The Cluster \"red\" is invalid: no", code: 1},
		"an error, and success":        {block: "$ a\nError: no\n", out: "Error: no", differs: "it has exited with 0, and the page shows an error"},
		"an error within a line":       {block: "$ a\nno Error: no\n", out: "no Error: no", code: 1, differs: "it has exited with 1, want 0"},
		"the code of the comment":      {block: "<!-- exits with 2: a b … -->\n$ a b c\nd\n", out: "d", code: 2},
		"the code, without output":     {block: "<!-- exits with 2: a -->\n$ a\n", code: 2},
		"not the code of the comment":  {block: "<!-- exits with 2: a -->\n$ a\n…\n", out: "b", code: 1, differs: "it has exited with 1, want 2"},
		"success in place of the code": {block: "<!-- exits with 2: a -->\n$ a\n…\n", out: "b", differs: "it has exited with 0, want 2"},
		"the code of another command":  {block: "<!-- exits with 2: b -->\n$ a\nc\n$ b\nc\n", out: "c", code: 2, differs: "it has exited with 2, want 0"},
		"the code of a longer command": {block: "<!-- exits with 2: a b -->\n$ a\nc\n$ a b\nc\n", out: "c"},
		"the codes of two commands":    {block: "<!-- exits with 2: a -->\n<!-- exits with 3: a b -->\n$ a\nc\n$ a b\nc\n", out: "c", code: 2},
	} {
		comments, commands := "", c.block
		if i := strings.Index(c.block, "$ "); i >= 0 {
			comments, commands = c.block[:i], c.block[i:]
		}
		blocks, err := pages.Parse("a.md", comments+"```console\n"+commands+"```\n")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := differs(blocks[0].Commands[0], c.out, c.code); (got == "") != (c.differs == "") || !strings.HasPrefix(got, c.differs) {
			t.Errorf("%s: %q, want %q", name, got, c.differs)
		}
	}
	hidden, err := pages.Parse("a.md", "<!-- run:\n$ a\n-->\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := differs(hidden[0].Commands[0], "b", 1); got == "" {
		t.Error("a command that readers do not see may fail")
	}
}

// TestTerminal_RunsConcurrently verifies that a command in a different terminal runs until it has printed the expected output, or until the
// limit, and leaves no process.
func TestTerminal_RunsConcurrently(t *testing.T) {
	dir, env := t.TempDir(), "PATH="+os.Getenv("PATH")
	for _, c := range []struct {
		typed, output, differs string
		// limit is the time in which a command that does not exit must print the expected output. 0 is await.Limit.
		limit time.Duration
		// ended is true if the command exits before close is called, which would interrupt it otherwise.
		ended bool
	}{
		{typed: "until test -e go; do sleep 0.05; done; echo done", output: "done"},
		{typed: "echo first; until test -e go; do sleep 0.05; done; echo last; sleep 1000", output: "first last"},
		{typed: "echo first; sleep 1000", output: "first…"},
		{typed: "echo no", output: "no"},
		{typed: "echo no; exit 3", output: "no", differs: "it has exited with 3, want 0", ended: true},
		{typed: "echo Error: no; exit 3", output: "Error: no", ended: true},
		{typed: "echo other; sleep 1000", output: "words", differs: `want "words", got "other"`, limit: 2 * time.Second},
		{typed: "echo more words", output: "more", differs: `want nothing more, got "words"`},
		{typed: "exit 3", output: "more", differs: `want "more", got nothing more`},
	} {
		term := openTerminal(t, pages.Command{Text: c.typed, Output: c.output}, "said", dir, env)
		if strings.Contains(c.typed, "-e go") {
			go func() {
				_ = os.WriteFile(filepath.Join(dir, "go"), nil, 0o600)
			}()
		}
		if c.ended {
			<-term.ended
		}
		err := term.close(cmp.Or(c.limit, await.Limit))
		if said := fmt.Sprint(err); (err == nil) != (c.differs == "") || !strings.HasPrefix(said, c.differs) && err != nil {
			t.Errorf("%s: %v, want %q", c.typed, err, c.differs)
		}
		if err := syscall.Kill(-term.cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s: something of it is left: %v", c.typed, err)
		}
		_ = os.Remove(filepath.Join(dir, "go"))
	}
}

// TestTerminal_LeavesNoProcesses verifies that the children of a command are stopped with it, even if they ignore Ctrl-C.
func TestTerminal_LeavesNoProcesses(t *testing.T) {
	dir := t.TempDir()
	term := openTerminal(t, pages.Command{Text: "trap '' INT; sleep 1000 & echo started; exit 0", Output: "started"}, "said", dir, "PATH="+os.Getenv("PATH"))
	if err := term.close(await.Limit); err != nil {
		t.Error(err)
	}
	harness.Eventually(t, "the process that it has left has ended", func(context.Context) (bool, error) {
		err := syscall.Kill(-term.cmd.Process.Pid, 0)
		return harness.Holds(errors.Is(err, syscall.ESRCH), err)
	})
}

// TestReads_AreReadOnlyCommands verifies that only such commands are repeated.
func TestReads_AreReadOnlyCommands(t *testing.T) {
	for typed, want := range map[string]bool{
		"kubectl get csm":                                      true,
		"kubectl -n dev get placementdecisions":                true,
		"kubectl --kubeconfig a/b get nodes":                   true,
		"kubectl --context c1 -n a get secret":                 true,
		"kubectl auth can-i get pods":                          true,
		"kubectl events --for managedcluster/a":                true,
		"kubectl hub get works":                                true,
		"kubectl hub why cluster a":                            true,
		"kubectl hub rollout status a -n b":                    true,
		"kubectl hub work status web":                          true,
		"_output/bin/localhub status":                          true,
		"_output/bin/localhub up":                              false,
		"kubectl hub rollout undo a":                           false,
		"kubectl hub get token":                                false,
		"kubectl hub accept --clusters a":                      false,
		"kubectl create role get":                              false,
		"kubectl label managedcluster a b=c --as agent":        false,
		"kubectl hub create work web -f demo/ --clusters x":    false,
		"kubectl delete cluster red -n teams --wait=false":     false,
		"kubectl --context teams--blue get configmaps":         true,
		"kubectl --context teams--blue create configmap get":   false,
		"kubectl hub access blue -n teams --cluster-role view": false,
	} {
		if got := reads.MatchString(typed); got != want {
			t.Errorf("%s: %v", typed, got)
		}
	}
}
