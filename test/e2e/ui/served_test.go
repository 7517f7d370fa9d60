// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// served is a "kubectl hub ui" that runs.
type served struct {
	// url is that of the page, without a secret.
	url string
	// errOut is what it says besides links.
	errOut harness.Buffer
	cmd    *exec.Cmd
	stdin  io.Writer
	stdout *bufio.Scanner
	// first is the link that it has printed by itself.
	first string
}

// serve starts "kubectl hub ui" for a user of a hub, or for its admin if the user is empty. It ends with the test, by Ctrl-C.
func serve(t *testing.T, h *localhub.Instance, user string, args ...string) *served {
	t.Helper()
	args = append([]string{"ui", "--no-browser"}, args...)
	if user != "" {
		args = append(args, "--as", user)
	}
	s := &served{cmd: harness.Plugin{Kubeconfig: h.AdminKubeconfig()}.Command(t, args...)}
	s.stdin = harness.Must(s.cmd.StdinPipe())(t)
	s.stdout = bufio.NewScanner(harness.Must(s.cmd.StdoutPipe())(t))
	s.cmd.Stderr = &s.errOut
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(os.Interrupt) }
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's context has ended, and so Ctrl-C was pressed: twice would end it at once.
		if err := s.cmd.Wait(); err != nil && s.cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("kubectl hub ui ends with %v: %s", err, s.errOut.String())
		}
	})
	s.first = s.printed(t)
	s.url, _, _ = strings.Cut(s.first, "/#")
	return s
}

// printed is the next link that it prints.
func (s *served) printed(t *testing.T) string {
	t.Helper()
	if !s.stdout.Scan() {
		t.Fatalf("kubectl hub ui has printed no link: %s", s.errOut.String())
	}
	if at, err := url.Parse(s.stdout.Text()); err != nil || !strings.HasPrefix(at.Fragment, "token=") {
		t.Fatalf("kubectl hub ui has printed %q: %s", s.stdout.Text(), s.errOut.String())
	}
	return s.stdout.Text()
}

// link is one that no browser has used: the first, or another by Enter.
func (s *served) link(t *testing.T) string {
	t.Helper()
	if first := s.first; first != "" {
		s.first = ""
		return first
	}
	if _, err := io.WriteString(s.stdin, "\n"); err != nil {
		t.Fatal(err)
	}
	return s.printed(t)
}
