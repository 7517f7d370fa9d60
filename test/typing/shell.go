// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package typing

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/clusterhub/clusterhub/test/await"
)

// shell is a bash that runs commands one after the other.
type shell struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
}

// mark is the prefix of the line that reports the end of a command, and its exit code.
const mark = "--- the command has ended: "

// newShell starts a shell in a folder. It is stopped when the test ends.
func newShell(t *testing.T, dir string, env ...string) *shell {
	t.Helper()
	s := &shell{cmd: exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc"), lines: make(chan string, 100)}
	s.cmd.Dir, s.cmd.Env = dir, env
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		s.cmd.Stderr = s.cmd.Stdout
		s.in, err = s.cmd.StdinPipe()
	}
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.lines)
		for read := bufio.NewReader(out); ; {
			line, err := read.ReadString('\n')
			if line != "" {
				s.lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = s.in.Close()
		for range s.lines { // until it has exited
		}
		_ = s.cmd.Wait()
	})
	return s
}

// run runs a command, and returns its output and its exit code. The next command sees the code in $?, as in an interactive shell.
func (s *shell) run(t *testing.T, typed string, code int) (string, int) {
	t.Helper()
	if _, err := fmt.Fprintf(s.in, "(exit %d)\n{ %s\n} </dev/null\nprintf '\\n%s%%d\\n' $?\n", code, typed, mark); err != nil {
		t.Fatalf("the shell has ended: %v", err)
	}
	var said strings.Builder
	timeout := time.NewTimer(await.Limit)
	defer timeout.Stop()
	for {
		select {
		case line, more := <-s.lines:
			if !more {
				t.Fatalf("the shell has ended: %s", said.String())
			}
			if ended, is := strings.CutPrefix(line, mark); is {
				code, err := strconv.Atoi(strings.TrimSpace(ended))
				if err != nil {
					t.Fatal(err)
				}
				return strings.TrimSuffix(said.String(), "\n"), code
			}
			said.WriteString(line)
		case <-timeout.C:
			_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // including its commands, which would hold its output open
			t.Fatalf("%s: has not ended after %s: %s", typed, await.Limit, said.String())
		}
	}
}
