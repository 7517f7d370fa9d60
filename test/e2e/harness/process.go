// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
	"github.com/clusterhub/clusterhub/test/leak"
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

// Logged has the logs of programs, and the secrets that must not appear in them.
type Logged struct {
	Logs    map[string][]byte
	Secrets leak.Secrets
}

// NewLogged returns a Logged without logs and secrets.
func NewLogged() *Logged { return &Logged{Logs: map[string][]byte{}, Secrets: leak.Secrets{}} }

// Add adds the secrets in a text.
func (l *Logged) Add(t *testing.T, name, text string) {
	t.Helper()
	if l.Secrets.AddFrom(name, []byte(text)) == 0 {
		t.Errorf("there is no secret in the %s", name)
	}
}

// Look searches each log for the secrets. It fails if a wanted secret or a log is missing, as the search would show nothing then.
func (l *Logged) Look(t *testing.T, wanted ...string) {
	t.Helper()
	names := slices.Sorted(maps.Keys(l.Secrets))
	for _, want := range wanted {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, want) }) {
			t.Errorf("there is no secret %q: %v", want, names)
		}
	}
	for name, log := range l.Logs {
		t.Logf("%s: looking for %d secrets in %d bytes", name, len(names), len(log))
		for _, found := range l.Secrets.Find(log) {
			t.Errorf("%s logs a secret: %s", name, found)
		}
		if strings.HasPrefix(name, "cluster-provider") || strings.HasPrefix(name, "hub-agent ") {
			continue // these logs have no requests
		}
		if len(log) < 1000 || !strings.Contains(string(log), `"Request"`) {
			t.Errorf("%s logs no requests:\n%.2000s", name, log)
		}
	}
}
