// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestMain lets the test's binary be the supervisor of jobs, as run is.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == superviseArg {
		os.Exit(supervise(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

func TestReadJobs(t *testing.T) {
	jobs, err := readJobs(strings.NewReader("Unit tests\tcompute\tgo test ./pkg/...\nCharts\twait\tA=b c \td\n"))
	if err != nil || len(jobs) != 2 || jobs[0].Kind != kindCompute || jobs[1].Command != "A=b c \td" {
		t.Errorf("got %+v, %v", jobs, err)
	}
	for _, line := range []string{"Unit tests\tcompute", "Unit tests\tsleep\ttrue"} {
		if _, err := readJobs(strings.NewReader(line)); err == nil {
			t.Errorf("%q was read as a job", line)
		}
	}
}

// TestSchedule shows which jobs run at the same time, and in which order they start.
func TestSchedule(t *testing.T) {
	jobs := []job{
		{Title: "short", Kind: kindWait, Expected: cost{Seconds: 10, CPU: 5}},
		{Title: "busy", Kind: kindWait, Expected: cost{Seconds: 100, CPU: 160}},
		{Title: "idle", Kind: kindWait, Expected: cost{Seconds: 50, CPU: 20}},
		{Title: "units", Kind: kindCompute, Expected: cost{Seconds: 60, CPU: 100}},
		{Title: "models", Kind: kindCompute, Expected: cost{Seconds: 5, CPU: 5}},
		{Title: "new", Kind: kindWait},
	}
	synctest.Test(t, func(t *testing.T) {
		began, events := time.Now(), make(chan string, 100)
		results := schedule(t.Context(), jobs, 2, func(_ context.Context, j job) result {
			events <- j.Title + " starts at " + time.Since(began).String()
			time.Sleep(time.Duration(max(j.Expected.Seconds, 30)) * time.Second)
			return result{job: j}
		}, t.Output())
		close(events)
		var starts []string
		for e := range events {
			starts = append(starts, e)
		}
		if len(results) != len(jobs) {
			t.Errorf("%d jobs have results, expected %d", len(results), len(jobs))
		}
		for _, want := range []string{
			"new starts at 0s",    // without a figure
			"units starts at 0s",  // beside those that wait
			"idle starts at 0s",   // 0.5 + 0.4 cores: busy does not fit beside new
			"short starts at 0s",  // 0.5 + 0.4 + 0.5
			"busy starts at 30s",  // 1.6 cores: not beside idle and short, but beside idle
			"models starts at 1m", // one that computes at a time
		} {
			found := false
			for _, s := range starts {
				found = found || strings.HasPrefix(s, want)
			}
			if !found {
				t.Errorf("%q did not happen: %q", want, starts)
			}
		}
	})
}

// TestExecute runs processes for half a second.
func TestExecute(t *testing.T) {
	dir := t.TempDir()
	// An orphan that computes, and one that would go on for long.
	command := "(while [ ! -e " + dir + "/enough ]; do :; done) & sleep 100 & echo hello; sleep 0.4; touch " + dir + "/enough; sleep 0.1; exit 3"
	began := time.Now()
	r := execute(t.Context(), job{Title: "x", Kind: kindCompute, Command: "(" + command + ")"})
	var exit interface{ ExitCode() int }
	if !errors.As(r.Err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("the job ended with %v, expected the exit code 3", r.Err)
	}
	if !strings.HasPrefix(string(r.Output), "hello\n") || !strings.Contains(string(r.Output), "sleep was left running") {
		t.Errorf("the job printed %q, expected hello and that sleep was left running", r.Output)
	}
	if r.Cost.CPU < 0.05 {
		t.Errorf("the job cost %v, expected the processor time of its orphan in it", r.Cost)
	}
	if took := time.Since(began); took > 50*time.Second {
		t.Errorf("the job took %s: what it left behind was not ended", took)
	}
}

func TestExecute_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(dir, "runs")); err == nil {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	began := time.Now()
	r := execute(ctx, job{Title: "x", Kind: kindWait, Command: "touch " + dir + "/runs; sleep 100"})
	if r.Err == nil || time.Since(began) > 50*time.Second {
		t.Errorf("the job ended after %s with %v, expected it to be ended at once", time.Since(began), r.Err)
	}
}

func TestFigures(t *testing.T) {
	file := filepath.Join(t.TempDir(), "figures.tsv")
	want := map[string]cost{"Unit tests": {Seconds: 900, CPU: 1500, Starts: 12}, "End-to-end tests of sets": {Seconds: 100, CPU: 80, Starts: 3}}
	if got, err := readFigures(file); err != nil || len(got) != 0 {
		t.Errorf("a file that does not exist has %v, %v", got, err)
	}
	if err := writeFigures(file, want); err != nil {
		t.Fatal(err)
	}
	got, err := readFigures(file)
	if err != nil || len(got) != 2 || got["Unit tests"] != want["Unit tests"] || got["End-to-end tests of sets"] != want["End-to-end tests of sets"] {
		t.Errorf("got %v, %v", got, err)
	}
	for cpu, noted := range map[float64]bool{1400: false, 1640: false, 1660: true} {
		if note := (cost{CPU: cpu}).against(want["Unit tests"]); (note != "") != noted {
			t.Errorf("%v processor seconds in place of 1500: %q", cpu, note)
		}
	}
}
