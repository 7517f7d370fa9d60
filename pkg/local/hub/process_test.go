// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpen_RejectsProcessesOfEarlierVersions: nothing would find them, and their ports are taken.
func TestOpen_RejectsProcessesOfEarlierVersions(t *testing.T) {
	config := Options{Dir: t.TempDir()}
	file := filepath.Join(config.Dir, "run", "etcd.pid")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	for pid, want := range map[int]string{os.Getpid(): fmt.Sprintf("`kill %d`", os.Getpid()), ended.Process.Pid: ""} {
		if err := os.WriteFile(file, fmt.Appendf(nil, `{"pid":%d,"started":"1","runs":"2"}`, pid), 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := open(config)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if err == nil {
			h.unlock()
		}
	}
}

func TestRun_RestartsChanged(t *testing.T) {
	var said []string
	config := Options{Dir: t.TempDir(), BinDir: t.TempDir(), Log: func(format string, args ...any) {
		said = append(said, fmt.Sprintf(format, args...))
	}}
	build := func(comment string) {
		t.Helper()
		script, bin := "#!/bin/sh\n# "+comment+"\nexec sleep 600\n", filepath.Join(config.BinDir, procHubAPIServer)
		// Another file, as written by go build: a shell may still read the one that it runs.
		if err := errors.Join(os.WriteFile(bin+".new", []byte(script), 0o700), os.Rename(bin+".new", bin)); err != nil {
			t.Fatal(err)
		}
	}
	// up returns the id of the process after another `make up`.
	up := func(flag string) int {
		t.Helper()
		h, err := open(config)
		if err != nil {
			t.Fatal(err)
		}
		defer h.unlock()
		ready := func(context.Context) bool { return true }
		if err := h.run(t.Context(), procHubAPIServer, procHubAPIServer, []string{flag}, nil, ready); err != nil {
			t.Fatal(err)
		}
		return h.PIDs()[procHubAPIServer]
	}
	t.Cleanup(func() {
		h, err := Open(config)
		if err != nil {
			t.Fatal(err)
		}
		h.Stop()
	})

	build("old")
	first := up("--v=1")
	build("old") // again, with the same result
	if again := up("--v=1"); again != first || len(said) > 0 {
		t.Errorf("process %d was replaced by %d though nothing had changed: %v", first, again, said)
	}
	build("new")
	second := up("--v=1")
	if third := up("--v=2"); second == first || third == second {
		t.Errorf("the processes are %d, with a new binary %d, with other flags %d", first, second, third)
	}
	if got := strings.Join(said, "\n"); strings.Count(got, "Restarting hub-apiserver") != 2 || len(said) != 2 {
		t.Errorf("the restarts are not logged once each: %q", got)
	}
}

// TestStart_FailureRetainsRunningProcesses: a failing `make up` must not stop a hub that its users need.
func TestStart_FailureRetainsRunningProcesses(t *testing.T) {
	config := Options{Dir: t.TempDir(), BinDir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(config.BinDir, procEtcd), []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := open(config)
	if err != nil {
		t.Fatal(err)
	}
	ready := func(context.Context) bool { return true }
	if err := h.run(t.Context(), procEtcd, procEtcd, nil, nil, ready); err != nil {
		t.Fatal(err)
	}
	h.unlock()
	t.Cleanup(h.Stop)

	if _, err := Start(t.Context(), config); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Fatalf("a hub started without its binaries: %v", err)
	}
	started, err := open(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := started.run(t.Context(), procHubEtcd, procEtcd, nil, nil, ready); err != nil {
		t.Fatal(err)
	}
	started.stopStarted()
	started.unlock()
	after, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{procEtcd: h.PIDs()[procEtcd]}
	if got := after.PIDs(); !maps.Equal(got, want) {
		t.Errorf("%v runs after a start that failed, want %v", got, want)
	}
}
