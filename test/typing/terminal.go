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

// terminal is another one than that of the page. One command runs in it while those of the next blocks are typed.
type terminal struct {
	typed pages.Command
	cmd   *exec.Cmd
	said  string
	ended chan struct{}
}

// openTerminal types a command in a folder, in which a file has what it prints. It ends with the test, and all that it has started.
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
		_ = term.cmd.Wait() // what the page says that it prints tells how it has ended
	}()
	t.Cleanup(term.kill)
	return term
}

// close waits until the command has printed what the page says, and then ends it as Ctrl-C does, if it has not ended. It returns what differs.
func (term *terminal) close(patience time.Duration) error {
	defer term.kill()
	differs := ""
	for until := time.Now().Add(patience); ; {
		over := term.hasEnded() // looked at first: nothing more is printed then
		if differs = pages.Differs(term.typed.Output, term.printed()); differs == "" || over || time.Now().After(until) {
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
		return nil
	}
	for until := time.Now().Add(await.Limit); time.Now().Before(until); {
		_ = syscall.Kill(-term.cmd.Process.Pid, syscall.SIGINT) // it may have ended meanwhile
		select {
		case <-term.ended:
			return nil
		case <-time.After(time.Second): // again: a shell that is about to start a program does not hear it
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

// kill ends what is left of the command.
func (term *terminal) kill() {
	_ = syscall.Kill(-term.cmd.Process.Pid, syscall.SIGKILL) // no process is left as a rule
	<-term.ended
}
