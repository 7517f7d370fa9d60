// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package localhub

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
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// TestFindProcess_LeavesAnothersProcessAlone: the id of a stale pid file is given to another process sooner or later.
func TestFindProcess_LeavesAnothersProcessAlone(t *testing.T) {
	cmd := exec.Command("cat") // lives until its input ends
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, started := range []string{"", "another time"} {
		content := fmt.Sprintf(`{"pid":%d,"started":%q}`, cmd.Process.Pid, started)
		if err := os.WriteFile(pidFile(dir, "etcd"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if findProcess(dir, "etcd") != nil {
			t.Fatalf("a process that was started at %q is taken for ours", started)
		}
		p := &process{PID: cmd.Process.Pid, Started: started, pidFile: pidFile(dir, "etcd")}
		p.stop()
	}
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("another's process was ended: %v", err)
	}
}

// TestAlive_NeedsAStartTime asks about a process that the system still has, without a start time: one that has ended and
// that nobody has waited for.
func TestAlive_NeedsAStartTime(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, startTimeout, true, func(context.Context) (bool, error) {
		return startTime(cmd.Process.Pid) == "", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if (&process{PID: cmd.Process.Pid}).alive() {
		t.Error("a process without a start time is taken for ours")
	}
}

func TestStartTimeByPS(t *testing.T) {
	if _, err := exec.LookPath("ps"); err != nil {
		t.Skip("there is no ps")
	}
	t.Setenv("TZ", "Asia/Tokyo")
	tokyo := startTimeByPS(os.Getpid())
	t.Setenv("TZ", "Europe/Paris")
	if paris := startTimeByPS(os.Getpid()); tokyo == "" || paris != tokyo {
		t.Errorf("in Tokyo this process was started at %q, in Paris at %q", tokyo, paris)
	}
	if _, err := time.Parse(time.ANSIC, tokyo); err != nil {
		t.Error(err)
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	if got := startTimeByPS(ended.Process.Pid); got != "" {
		t.Errorf("a process that has ended was started at %q", got)
	}
}

func TestRun_RestartsWhatHasChanged(t *testing.T) {
	var said []string
	config := Config{Dir: t.TempDir(), BinDir: t.TempDir(), Log: func(format string, args ...any) {
		said = append(said, fmt.Sprintf(format, args...))
	}}
	build := func(comment string) {
		t.Helper()
		script, bin := "#!/bin/sh\n# "+comment+"\nexec sleep 600\n", filepath.Join(config.BinDir, procHubAPIServer)
		// Another file, as of go build: a shell may still read the one that it runs.
		if err := errors.Join(os.WriteFile(bin+".new", []byte(script), 0o700), os.Rename(bin+".new", bin)); err != nil {
			t.Fatal(err)
		}
	}
	// up returns the id of the process, as another `make up` would have it.
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
		return h.procs[procHubAPIServer].PID
	}
	t.Cleanup(func() {
		if p := findProcess(config.Dir, procHubAPIServer); p != nil {
			p.kill()
		}
	})

	build("old")
	first := up("--v=1")
	build("old") // anew, with the same result
	if again := up("--v=1"); again != first || len(said) > 0 {
		t.Errorf("process %d was replaced by %d though nothing had changed: %v", first, again, said)
	}
	build("new")
	second := up("--v=1")
	if third := up("--v=2"); second == first || third == second {
		t.Errorf("the processes are %d, with a new binary %d, with other flags %d", first, second, third)
	}
	if got := strings.Join(said, "\n"); strings.Count(got, "Restarting hub-apiserver") != 2 || len(said) != 2 {
		t.Errorf("the restarts are not said once each: %q", got)
	}
}

// TestStart_ThatFailsLeavesRunningWhatRan: an error of `make up` is no reason to take a hub from its users.
func TestStart_ThatFailsLeavesRunningWhatRan(t *testing.T) {
	config := Config{Dir: t.TempDir(), BinDir: t.TempDir(), Root: t.TempDir()}
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
	want := map[string]int{procEtcd: h.procs[procEtcd].PID}
	if got := after.PIDs(); !maps.Equal(got, want) {
		t.Errorf("%v runs after a start that failed, want %v", got, want)
	}
}
