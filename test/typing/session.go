// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package typing runs the commands of the documentation as its readers do, and compares their output with the pages.
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

// Session runs the blocks of a page in one shell: the next command has the state that a command leaves, such as variables.
type Session struct {
	// Before is called before each command, if it is not nil.
	Before func()
	// StopsAtFailure ends the test at the first command that fails: for pages whose commands are slow, and depend on the previous ones.
	StopsAtFailure bool

	t       *testing.T
	shell   *shell
	dir     string
	env     []string
	code    int
	instead []string
}

// New starts a session in a folder, with only these variables ("NAME=VALUE"). It is stopped when the test ends.
func New(t *testing.T, dir string, env ...string) *Session {
	t.Helper()
	return &Session{t: t, shell: newShell(t, dir, env...), dir: dir, env: env}
}

// RunBy returns the blocks of all pages with the comment "run by: FOLDER TEST". The folder is a path relative to root, the root of the repository.
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

// Instead replaces texts in commands and in expected output: each pair has a text of the pages, and its replacement.
func (s *Session) Instead(texts ...string) { s.instead = append(s.instead, texts...) }

// Write creates a file that readers of the page have.
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

// Types runs the commands of blocks, except those that a page exempts, and creates the files that blocks show. Commands in other terminals must have
// printed the output of their blocks in the end. The test fails for each command that fails or prints something else.
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
			c = c.Swapped(texts)
			if b.Elsewhere {
				others = append(others, openTerminal(s.t, c, fmt.Sprintf(".terminal-%d", len(others)+1), s.dir, s.env...))
				continue
			}
			s.try(c)
			if s.StopsAtFailure && s.t.Failed() {
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

// values returns the current replacements of a block in the session: each text, and its value.
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

// reads matches commands that change nothing: their output becomes the expected one once the hub has completed previous requests.
var reads = regexp.MustCompile(`^_output/bin/localhub status\b|^kubectl (?:--\S+ \S+ )*(?:-n \S+ )?(?:get|describe|events|auth can-i|hub (?:--\S+ \S+ )*(?:get (?:clusters|placements|works|klusterlets)|members|why|tree|top|doctor|explain|work status|rollout (?:status|history)|deploycheck))\b`)

// try runs a command, and fails the test if its output or its exit code differs from the page.
func (s *Session) try(c pages.Command) {
	s.t.Helper()
	started := time.Now()
	said, out, code := "", "", 0
	_ = await.Until(s.t.Context(), await.Limit, func(context.Context) (bool, error) {
		out, code = s.shell.run(s.t, c.Text, s.code)
		said = differs(c, out, code)
		return said == "" || !reads.MatchString(c.Text), nil
	})
	if said != "" {
		s.t.Errorf("%s: %s\n%s: the page has\n%s\nand it is\n%s", c.Where(), c.Text, said, c.Output, out)
	} else {
		s.t.Logf("%s: %s", c.Where(), time.Since(started).Round(time.Millisecond))
	}
	s.code = code
}

// differs returns how the output or the exit code of a command differs from the page, or "".
func differs(c pages.Command, out string, code int) string {
	if !c.NoOutput && c.Output != "" {
		if said := pages.Differs(c.Output, out); said != "" {
			return said
		}
	}
	return c.CheckExit(code)
}
