// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package typing

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/clusterhub/clusterhub/hack/docs/pages"
	"github.com/clusterhub/clusterhub/test/await"
)

// terminal is an additional terminal. One command runs in it during the commands of the next blocks.
type terminal struct {
	typed pages.Command
	cmd   *exec.Cmd
	said  string
	ended chan struct{}
}

// openTerminal starts a command in a folder with a file for its output. The command and its children are stopped when the test ends.
func openTerminal(t *testing.T, typed pages.Command, said, dir string, env ...string) *terminal {
	t.Helper()
	out, err := os.Create(filepath.Join(dir, said))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	term := &terminal{typed: typed, said: out.Name(), ended: make(chan struct{})}
	term.cmd = exec.Command("bash", "--noprofile", "--norc", "-c", typed.Text)
	term.cmd.Dir, term.cmd.Env, term.cmd.Stdout, term.cmd.Stderr = dir, env, out, out
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := term.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(term.ended)
		_ = term.cmd.Wait() // close checks the exit code
	}()
	t.Cleanup(term.kill)
	return term
}

// close waits until the command has printed the expected output, and then interrupts it as Ctrl-C does, if it still runs. It returns how the output
// differs, or the exit code of a command that has ended before.
func (term *terminal) close(patience time.Duration) error {
	defer term.kill()
	differs := ""
	for until := time.Now().Add(patience); ; {
		over := term.hasEnded() // checked first, as no output follows then
		differs = pages.Differs(term.typed.Output, term.printed())
		if differs == "" || over || time.Now().After(until) {
			break
		}
		select {
		case <-term.ended:
		case <-time.After(100 * time.Millisecond):
		}
	}
	if differs != "" {
		return fmt.Errorf("%s\nthe page has\n%s\nand it is\n%s", differs, term.typed.Output, term.printed())
	}
	if term.hasEnded() {
		if differs := term.typed.CheckExit(term.cmd.ProcessState.ExitCode()); differs != "" {
			return fmt.Errorf("%s: it has printed\n%s", differs, term.printed())
		}
		return nil
	}
	for until := time.Now().Add(await.Limit); time.Now().Before(until); {
		_ = syscall.Kill(-term.cmd.Process.Pid, syscall.SIGINT) // it may have exited already
		select {
		case <-term.ended:
			return nil
		case <-time.After(time.Second): // again: a shell that is about to start a program misses the signal
		}
	}
	return errors.New("it has not ended by Ctrl-C")
}

func (term *terminal) printed() string {
	said, err := os.ReadFile(term.said)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(said))
}

func (term *terminal) hasEnded() bool {
	select {
	case <-term.ended:
		return true
	default:
		return false
	}
}

// kill kills the remaining processes of the command.
func (term *terminal) kill() {
	_ = syscall.Kill(-term.cmd.Process.Pid, syscall.SIGKILL) // usually, no process is left
	<-term.ended
}
