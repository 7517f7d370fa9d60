// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/clusterhub/clusterhub/test/await"
)

func awaitEnd(t *testing.T, proc Process) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, await.Limit, true, func(context.Context) (bool, error) {
		running, err := proc.Running()
		return !running, err
	})
	if err != nil {
		t.Fatal("the process does not end: ", err)
	}
}

// TestProcess_IgnoresReusedPID: the id of a process that has exited is reused sooner or later.
func TestProcess_IgnoresReusedPID(t *testing.T) {
	proc := Process{Dir: t.TempDir(), Name: "true", Tied: true}
	if err := proc.Start("/bin/true", nil); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, proc)
	other := exec.Command("cat") // lives until its input ends
	stdin, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(proc.file(".pid"), []byte(strconv.Itoa(other.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := proc.Kill(); err != nil {
		t.Error(err)
	}
	_ = stdin.Close()
	if err := other.Wait(); err != nil {
		t.Errorf("another's process was ended: %v", err)
	}
}

// TestProcess_Stops stops a process that exits on SIGTERM, and starts it only once.
func TestProcess_Stops(t *testing.T) {
	proc := Process{Dir: t.TempDir(), Name: "sleep", Tied: true}
	if err := proc.Start("/bin/sleep", []string{"600"}); err != nil {
		t.Fatal(err)
	}
	if err := proc.Start("/bin/sleep", []string{"600"}); err == nil || !strings.Contains(err.Error(), "already running") {
		t.Errorf("a second process: %v", err)
	}
	if !proc.Runs("/bin/sleep", []string{"600"}) || proc.Runs("/bin/sleep", []string{"60"}) {
		t.Error("the command line is not known")
	}
	if err := proc.Stop(); err != nil {
		t.Fatal(err)
	}
	if running, err := proc.Running(); err != nil || running {
		t.Errorf("running: %t, %v", running, err)
	}
}

// TestProcess_ReportsExitReason: a process that is killed prints nothing itself.
func TestProcess_ReportsExitReason(t *testing.T) {
	proc := Process{Dir: t.TempDir(), Name: "sleep", LogFile: t.TempDir() + "/log", Tied: true}
	if err := proc.Start("/bin/sh", []string{"-c", "echo $SAID; exec sleep 600"}, "SAID=hello"); err != nil {
		t.Fatal(err)
	}
	for started := time.Now(); Complaint(proc.Log()) != "hello"; time.Sleep(time.Millisecond) {
		if time.Since(started) > await.Limit {
			t.Fatal("nothing is logged")
		}
	}
	if err := proc.Kill(); err != nil {
		t.Fatal(err)
	}
	const want = "sleep exited (signal: killed): hello; see its log "
	for started := time.Now(); !strings.HasPrefix(proc.Ended().Error(), want); time.Sleep(time.Millisecond) {
		if time.Since(started) > await.Limit {
			t.Fatalf("got %q, want %q", proc.Ended(), want)
		}
	}
}

// TestEnvironment_DetectorsOnlyForOwnPrograms: variables that tests set for our programs are not passed to Kubernetes' own.
func TestEnvironment_DetectorsOnlyForOwnPrograms(t *testing.T) {
	t.Setenv("KUBE_CACHE_MUTATION_DETECTOR", "true")
	t.Setenv("KUBE_OTHER", "1")
	has := func(bin, variable string) bool { return slices.Contains(environment(bin), variable) }
	for bin, want := range map[string]bool{"/bin/hub-apiserver": true, "/bin/kube-apiserver": false, "/bin/kube-controller-manager": false, "/bin/etcd": false} {
		if has(bin, "KUBE_CACHE_MUTATION_DETECTOR=true") != want || !has(bin, "KUBE_OTHER=1") {
			t.Errorf("%s has %q, expected the detector: %t, and KUBE_OTHER", bin, environment(bin), want)
		}
	}
}
