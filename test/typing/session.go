// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package typing types the commands of the documentation, as those who read it do, and compares what they print with what the pages say.
package typing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/clusterhub/clusterhub/hack/docs/pages"
	"github.com/clusterhub/clusterhub/test/await"
)

// Session is where the blocks of a page are typed: what a command leaves, such as a variable, the next one has.
type Session struct {
	// Before is called before each command, if it is not nil.
	Before func()
	// StopsAtFailure ends the test at the first command that fails: for pages whose commands take long, and need what those before have done.
	StopsAtFailure bool

	t       *testing.T
	shell   *shell
	dir     string
	env     []string
	code    int
	instead []string
}

// New starts a session in a folder, with these variables alone ("NAME=VALUE"). It ends with the test.
func New(t *testing.T, dir string, env ...string) *Session {
	t.Helper()
	return &Session{t: t, shell: newShell(t, dir, env...), dir: dir, env: env}
}

// RunBy are the blocks of all pages of which a comment says that a test types them: "run by: FOLDER TEST". The folder is a path from root, which
// is that of the repository.
func RunBy(t *testing.T, root, folder, test string) []pages.Block {
	t.Helper()
	all, err := pages.All(root)
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(b pages.Block) bool { return b.RunBy != folder+" "+test })
	if len(all) == 0 {
		t.Fatalf("no page has a block that %s of %s types", test, folder)
	}
	return all
}

// Instead has other texts typed, and wants them printed: in each pair one that pages have, and what it stands for here.
func (s *Session) Instead(texts ...string) { s.instead = append(s.instead, texts...) }

// Write makes a file that readers of the page have.
func (s *Session) Write(name string, data []byte) {
	s.t.Helper()
	file := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// Types types the commands of blocks, but of those that a page exempts, and makes the files that blocks show. What goes on in other terminals
// has to have printed what its block says in the end. The test fails for each command that does or prints something else.
func (s *Session) Types(blocks []pages.Block) {
	s.t.Helper()
	var others []*terminal
	defer func() {
		for _, other := range others {
			if s.t.Failed() {
				s.t.Logf("%s: %s has printed\n%s", other.typed.Where(), other.typed.Text, other.printed())
			}
		}
	}()
	for _, b := range blocks {
		if b.File != "" {
			s.Write(b.File, []byte(b.Text+"\n"))
		}
		if b.NotRun != "" {
			continue
		}
		texts, err := s.values(b)
		if err != nil {
			s.t.Errorf("%s: %v", b.Where(), err)
		}
		for _, c := range b.Commands {
			if s.Before != nil {
				s.Before()
			}
			if c = c.Swapped(texts); b.Elsewhere {
				others = append(others, openTerminal(s.t, c, fmt.Sprintf(".terminal-%d", len(others)+1), s.dir, s.env...))
				continue
			}
			if s.try(c); s.StopsAtFailure && s.t.Failed() {
				s.t.FailNow()
			}
		}
	}
	for _, other := range others {
		if err := other.close(await.Limit); err != nil {
			s.t.Errorf("%s: %s\n%v", other.typed.Where(), other.typed.Text, err)
		}
	}
	if s.StopsAtFailure && s.t.Failed() {
		s.t.FailNow()
	}
}

// values are what is typed instead of texts of a block, as the session has it now: each text, and what it is.
func (s *Session) values(b pages.Block) (texts []string, err error) {
	s.t.Helper()
	for _, swap := range b.Swaps {
		value, code := s.shell.run(s.t, "printf %s "+swap.Word, s.code)
		if code != 0 || value == "" {
			err = errors.Join(err, fmt.Errorf("%s is typed instead of %s, and fails with %d, or is nothing: %q", swap.Word, swap.Text, code, value))
		}
		texts = append(texts, swap.Text, value)
	}
	return append(texts, s.instead...), err
}

// reads are commands that change nothing: what they print becomes what the page says when the hub has done what was asked before.
var reads = regexp.MustCompile(`^_output/bin/localhub status\b|^kubectl (?:--\S+ \S+ )*(?:-n \S+ )?(?:get|describe|events|auth can-i|hub (?:--\S+ \S+ )*(?:get (?:clusters|placements|works|klusterlets)|members|why|tree|top|doctor|explain|work status|rollout (?:status|history)|deploycheck))\b`)

// try types a command, and says what differs.
func (s *Session) try(c pages.Command) {
	s.t.Helper()
	started := time.Now()
	said, out, code := "", "", 0
	_ = await.Until(s.t.Context(), await.Limit, func(context.Context) (bool, error) {
		said = ""
		if out, code = s.shell.run(s.t, c.Text, s.code); !c.NoOutput && c.Output != "" {
			said = pages.Differs(c.Output, out)
		} else if code != 0 {
			said = fmt.Sprintf("it has failed with %d", code)
		}
		return said == "" || !reads.MatchString(c.Text), nil
	})
	if said != "" {
		s.t.Errorf("%s: %s\n%s: the page has\n%s\nand it is\n%s", c.Where(), c.Text, said, c.Output, out)
	} else {
		s.t.Logf("%s: %s", c.Where(), time.Since(started).Round(time.Millisecond))
	}
	s.code = code
}
