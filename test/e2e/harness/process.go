// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// FreePort returns a free port for a server that is about to start.
func FreePort(t *testing.T) int {
	t.Helper()
	listener, port, err := localserver.Listen()
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	return port
}

// Daemon is a process that a test can kill and restart.
type Daemon struct {
	t   *testing.T
	bin string
	// Args are the arguments of the process.
	Args []string
	// Out is the output of all runs of the process.
	Out Buffer

	mu  sync.Mutex
	cmd *exec.Cmd
	// over reports whether the test has ended.
	over bool
}

// StartDaemon starts a process that is stopped when the test ends. The test fails if the process lacked a right.
func StartDaemon(t *testing.T, bin string, args ...string) *Daemon {
	t.Helper()
	d := &Daemon{t: t, bin: bin, Args: args}
	d.Restart()
	t.Cleanup(func() {
		d.mu.Lock()
		d.over = true
		d.mu.Unlock()
		d.Kill()
		if said := d.Out.String(); t.Failed() || lacksRight(said) {
			t.Errorf("%s %s says:\n%s", filepath.Base(bin), args[0], said[max(0, len(said)-8000):])
		}
	})
	return d
}

// lacksRight reports whether a program logged that a request was forbidden, other than a write to a namespace that is being deleted.
func lacksRight(log string) bool {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "forbidden") && !strings.Contains(line, "because it is being terminated") {
			return true
		}
	}
	return false
}

// Restart stops the process, if it runs, and starts it.
func (d *Daemon) Restart() {
	d.t.Helper()
	d.Kill()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return
	}
	d.cmd = exec.Command(d.bin, d.Args...)
	d.cmd.Stdout, d.cmd.Stderr = &d.Out, &d.Out
	if err := d.cmd.Start(); err != nil {
		d.t.Error(err)
	}
}

// Kill kills the process with SIGKILL.
func (d *Daemon) Kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cmd != nil {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
		d.cmd = nil
	}
}

// Buffer is a buffer that supports concurrent reads and writes.
type Buffer struct {
	mu  sync.Mutex
	buf strings.Builder
}

// Write implements io.Writer.
func (s *Buffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

// String returns all that was written.
func (s *Buffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}
