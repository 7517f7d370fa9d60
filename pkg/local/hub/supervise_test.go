// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/clusterhub/clusterhub/test/await"
)

// fakeHub is a hub whose programs are scripts of a test, in the background.
type fakeHub struct {
	*Instance
	t *testing.T
	// logged is the output of the supervisor.
	logged bytes.Buffer
	*supervisor
}

func newFakeHub(t *testing.T) *fakeHub {
	t.Helper()
	hub, err := Open(Options{Dir: t.TempDir(), BinDir: t.TempDir(), Detach: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Kill)
	h := &fakeHub{Instance: hub, t: t}
	h.supervisor = &supervisor{dir: hub.Dir(), watched: map[string]*processState{}, log: func(format string, args ...any) {
		fmt.Fprintf(&h.logged, format+"\n", args...)
	}}
	return h
}

// runs starts a program that is a script.
func (h *fakeHub) runs(of *Instance, name, script string) {
	h.t.Helper()
	err := errors.Join(os.WriteFile(of.bin(name), []byte("#!/bin/sh\n"+script+"\n"), 0o700), //nolint:gosec // it is to be run
		of.run(h.t.Context(), name, name, []string{"--of=" + name}, []string{"GREETING=hello"}, func(context.Context) bool { return true }))
	if err != nil {
		h.t.Fatal(err)
	}
}

// kills kills a process like the kernel when memory is exhausted.
func (h *fakeHub) kills(of *Instance, name string) {
	h.t.Helper()
	if err := of.process(name).Kill(); err != nil {
		h.t.Fatal(err)
	}
}

// says returns the texts about processes, with N for their ids.
func (h *fakeHub) says(now time.Time) string {
	h.t.Helper()
	all, err := h.Status(now)
	if err != nil {
		h.t.Fatal(err)
	}
	var said []string
	for _, s := range all {
		runs := "missing"
		if s.PID != 0 {
			runs = "runs"
		}
		said = append(said, strings.TrimSpace(s.Name+" "+runs+" "+s.Says))
	}
	return strings.Join(said, "\n")
}

const lives = `echo "$GREETING $1" && exec sleep 600`

// TestSupervise_RestartsExited: processes are restarted with their flags and environment, in the session of the supervisor, and the status
// reports why they exited.
func TestSupervise_RestartsExited(t *testing.T) {
	h := newFakeHub(t)
	beside, err := Open(h.config.Cluster("berlin-1"))
	if err != nil {
		t.Fatal(err)
	}
	h.runs(h.Instance, procHubController, lives)
	h.runs(beside, procFront, lives)
	for _, c := range []struct {
		of           *Instance
		name, called string
	}{{h.Instance, procHubController, procHubController}, {beside, procFront, "berlin-1/" + procFront}} {
		log := c.of.process(c.name).Log()
		awaits(t, "the log of "+c.called, func() bool { return has(log, "hello --of="+c.name) })
		before := c.of.PIDs()[c.name]
		if got, want := sessionOf(t, before), sessionOf(t, os.Getpid()); got != want {
			t.Errorf("%s is in session %s, want that of its parent, %s", c.called, got, want)
		}
		now := time.Now()
		h.check(now)
		if c.of.PIDs()[c.name] != before {
			t.Errorf("%s was started again although it runs", c.called)
		}
		h.kills(c.of, c.name)
		h.check(now)
		awaits(t, c.called+" runs again", func() bool { return c.of.PIDs()[c.name] != 0 && c.of.PIDs()[c.name] != before })
		awaits(t, "the log of "+c.called, func() bool { return has(log, "hello --of="+c.name) })
		want := c.called + " runs restarted once, last 5s ago: signal: killed, last log line: hello --of=" + c.name
		if got := h.says(now.Add(5 * time.Second)); !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if want := c.called + " exited: signal: killed, last log line: hello"; !strings.Contains(h.logged.String(), want) {
			t.Errorf("the supervisor logs\n%s\nwant\n%s", h.logged.String(), want)
		}
	}
}

// TestSupervise_BacksOff: a process that exits repeatedly is restarted with growing delays, and the status reports the next time.
func TestSupervise_BacksOff(t *testing.T) {
	h := newFakeHub(t)
	h.runs(h.Instance, procEtcd, lives)
	// A new file: the previous one is being executed.
	err := errors.Join(os.Remove(h.bin(procEtcd)), os.WriteFile(h.bin(procEtcd), []byte("#!/bin/sh\necho no room; exit 3\n"), 0o700)) //nolint:gosec // it is to be run
	if err != nil {
		t.Fatal(err)
	}
	h.kills(h.Instance, procEtcd)
	begun := time.Now()
	ended := func() bool { return !h.running(procEtcd) }
	end := begun.Add(time.Minute)
	for now := begun; now.Before(end); now = now.Add(time.Second) { // a minute passes in steps
		h.check(now)
		awaits(t, "the process ends", ended)
	}
	if got := strings.Count(h.logged.String(), "Restarting etcd"); got != 6 {
		t.Errorf("started %d times in a minute, want 6:\n%s", got, h.logged.String())
	}
	got := h.says(end)
	for _, want := range []string{"etcd missing exited 7 times, last 23s ago, restarts in 7s: exit status 3, last log line: no room",
		"supervisor missing does not run, so processes that exit are not restarted"} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// TestSupervise_IgnoresStopped: stopped processes are not restarted, nor those of a hub that does not run in the background.
func TestSupervise_IgnoresStopped(t *testing.T) {
	h := newFakeHub(t)
	h.runs(h.Instance, procEtcd, lives)
	h.runs(h.Instance, procKCM, lives)
	if all := h.check(time.Now()); all != 2 {
		t.Errorf("%d processes should run, want 2", all)
	}
	h.stop(procKCM)
	h.check(time.Now())
	if h.running(procKCM) || !h.running(procEtcd) {
		t.Errorf("kube-controller-manager was stopped, and etcd was not: %v run", h.PIDs())
	}
	h.Stop()
	if all := h.check(time.Now()); all != 0 || len(h.PIDs()) > 0 {
		t.Fatalf("%d processes should run after a stop, and these run: %v", all, h.PIDs())
	}
	if err := Supervise(t.Context(), h.Dir(), t.Logf); err != nil { // it returns, as nothing is left to do
		t.Error(err)
	}
	h.config.Detach = false
	h.runs(h.Instance, procEtcd, lives)
	if all := h.check(time.Now()); all != 0 {
		t.Error("a process of a test is supervised")
	}
}

// TestSupervise_LimitsLogs: a log that is too large becomes the previous one, and the process continues to write.
func TestSupervise_LimitsLogs(t *testing.T) {
	h := newFakeHub(t)
	h.runs(h.Instance, procEtcd, `echo first; while [ ! -e "$0.go" ]; do sleep 0.01; done; echo second; exec sleep 600`)
	log := h.process(procEtcd).Log()
	awaits(t, "its log", func() bool { return has(log, "first") })
	h.boundLogs(6)
	if !has(log, "first") {
		t.Error("a log of 6 bytes is longer than 6")
	}
	h.boundLogs(5)
	if err := os.WriteFile(h.bin(procEtcd)+".go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	awaits(t, "its log", func() bool { return has(log, "second") })
	if data, err := os.ReadFile(log); err != nil || string(data) != "second\n" || !has(log+".previous", "first") {
		t.Errorf("%v: the log is %q", err, data)
	}
}

func awaits(t *testing.T, what string, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, await.Limit, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func has(file, text string) bool {
	data, err := os.ReadFile(file)
	return err == nil && strings.Contains(string(data), text)
}

// sessionOf returns the session of a process, as the system names it. Systems without /proc have none.
func sessionOf(t *testing.T, pid int) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "stat"))
	if err != nil {
		t.Skip(err)
	}
	_, after, _ := strings.Cut(string(data), ") ")
	return strings.Fields(after)[3]
}
