// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestMain makes the test binary the supervisor of jobs if it is started as such, like run.
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
		results := schedule(t.Context(), jobs, 2, func() float64 { return spareCores }, func(_ context.Context, j job) result {
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
			"idle starts at 10s",  // 0.5 + 0.4 cores, when the load is known: busy does not fit beside new
			"short starts at 20s", // 0.5 + 0.4 + 0.5
			"busy starts at 50s",  // 1.6 cores: not beside idle and short, but beside idle
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

// TestSchedule_OnBusyMachine shows that jobs that wait run one at a time if no core is spare, and that jobs that compute run beside them.
func TestSchedule_OnBusyMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waiting, most atomic.Int32
		jobs := []job{{Title: "a", Kind: kindWait}, {Title: "b", Kind: kindWait}, {Title: "units", Kind: kindCompute}, {Title: "c", Kind: kindWait}}
		began := time.Now()
		schedule(t.Context(), jobs, 2, func() float64 { return spareCores / 2 }, func(_ context.Context, j job) result {
			if j.Kind == kindWait {
				most.Store(max(most.Load(), waiting.Add(1)))
				defer waiting.Add(-1)
			}
			time.Sleep(time.Minute)
			return result{job: j}
		}, t.Output())
		if most.Load() != 1 || time.Since(began) != 3*time.Minute {
			t.Errorf("%d jobs waited at the same time and all took %s, expected one at a time and 3m0s", most.Load(), time.Since(began))
		}
	})
}

// TestExecute_ComputesAtLowPriority shows that the idle time for jobs that wait includes the time of jobs that compute. This test may run at a low
// priority itself, which jobs that wait inherit.
func TestExecute_ComputesAtLowPriority(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("priorities are set on Linux only")
	}
	// This is the 19th field of /proc/PID/stat.
	const niceness = "cut -d' ' -f19 /proc/self/stat"
	inherited, err := exec.CommandContext(t.Context(), "bash", "-c", niceness).Output()
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]string{kindCompute: "5", kindWait: strings.TrimSpace(string(inherited))} {
		r := execute(t.Context(), job{Title: "x", Kind: kind, Command: niceness})
		if got := strings.TrimSpace(string(r.Output)); r.Err != nil || got != want {
			t.Errorf("a job of kind %s runs with niceness %q, expected %s: %v", kind, got, want, r.Err)
		}
	}
}

// TestExecute_CountsKubeAPIServers runs programs of that name, one of which starts late, and one which is not a descendant of the job.
func TestExecute_CountsKubeAPIServers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are counted on Linux only")
	}
	dir := t.TempDir()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	server := filepath.Join(dir, "kube-apiserver")
	if err := os.Symlink(sleep, server); err != nil {
		t.Fatal(err)
	}
	other := exec.CommandContext(t.Context(), server, "100")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	command := fmt.Sprintf("(%[1]s 100 &); sleep 0.7; %[1]s 1.2", server)
	if r := execute(t.Context(), job{Title: "x", Kind: kindWait, Command: command}); r.Err != nil || r.Cost.Starts != 2 {
		t.Errorf("%d kube-apiservers were counted, expected 2: %v", r.Cost.Starts, r.Err)
	}
}

// TestExecute runs processes that take half a second of processor time.
func TestExecute(t *testing.T) {
	dir := t.TempDir()
	// It leaves behind an orphan that computes, and one that would run for long.
	command := "(for ((i = 0; i < 200000; i++)); do :; done; touch " + dir + "/enough) & sleep 100 & echo hello; while [ ! -e " + dir + "/enough ]; do sleep 0.05; done; sleep 0.1; exit 3"
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

func TestExecute_EndsWithContext(t *testing.T) {
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
}

// TestFigures_OfTests shows that figures of tests belong to their job, and that those of removed tests are removed.
func TestFigures_OfTests(t *testing.T) {
	figures := map[string]cost{"a": {CPU: 1}, "a > TestGone": {Seconds: 9}, "ab > TestX": {Seconds: 7}}
	setFigures(figures, result{job: job{Title: "a"}, Cost: cost{CPU: 2}, Took: map[string]time.Duration{"TestLong": 4 * time.Second, "TestShort": time.Second}})
	if want := (map[string]cost{"a": {CPU: 2}, "a > TestLong": {Seconds: 4}, "ab > TestX": {Seconds: 7}}); !maps.Equal(figures, want) {
		t.Errorf("got %v, expected %v", figures, want)
	}
	setFigures(figures, result{job: job{Title: "a"}, Cost: cost{CPU: 0.1}, Cached: true})
	if figures["a"].CPU != 2 {
		t.Errorf("a job of which results are cached has the figure %v, expected that of the run before", figures["a"])
	}
	if took := tookOf(figures, "a"); len(took) != 1 || took["TestLong"] != 4*time.Second {
		t.Errorf("the tests of a take %v", took)
	}
}

// TestReadEvents runs go test on a package with a test that fails, one that passes and one that ends the program.
func TestReadEvents(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{"go.mod": "module x\n\ngo 1.24\n", "x_test.go": `package x
import ("os"; "testing"; "time")
func TestA(t *testing.T) { t.Log("quiet"); time.Sleep(20*time.Millisecond) }
func TestB(t *testing.T) { t.Run("sub", func(t *testing.T) { t.Error("loud\nand clear"); t.Log("container x said:\n y") }) }
func TestC(t *testing.T) { t.Log("before the end"); os.Exit(3) }
`} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "-json", "-count=1", ".")
	cmd.Dir = dir
	raw, err := cmd.Output()
	if err == nil {
		t.Fatal("go test has not failed")
	}
	text, failures, took := readEvents(append([]byte("a line of a script\n"), raw...))
	for _, want := range []string{"a line of a script\n", "--- FAIL: TestB/sub", "loud", "before the end", "FAIL\tx\t"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not printed:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "quiet") || strings.Contains(string(text), "=== RUN") {
		t.Errorf("what a test prints that passes is printed:\n%s", text)
	}
	var summary bytes.Buffer
	printFailures(&summary, []result{{job: job{Title: "x"}, Failures: failures}})
	want := "=== x > TestB/sub failed:\n      x_test.go:4: loud\n              and clear\n=== x > TestB failed:\n=== x > TestC failed:\n      x_test.go:5: before the end\n"
	if summary.String() != want {
		t.Errorf("the summary is\n%swant\n%s", &summary, want)
	}
	if took["TestA"] < 20*time.Millisecond || len(took) != 2 {
		t.Errorf("the tests took %v, expected TestA and TestB", took)
	}
}

// TestGrowth has jobs on a machine half as fast as that of the figures.
func TestGrowth(t *testing.T) {
	waiting := func(title string, expected, costs float64) result {
		return result{job: job{Title: title, Kind: kindWait, Expected: cost{CPU: expected}}, Cost: cost{CPU: costs, Seconds: 100}}
	}
	tests := map[string]struct {
		left  time.Duration
		costs []float64
		again int
		fails bool
	}{
		"no time for another run":      {left: 99 * time.Second, costs: []float64{250}},
		"the second run costs no more": {left: time.Hour, costs: []float64{250}, again: 1},
		"the third run costs no more":  {left: time.Hour, costs: []float64{280, 250}, again: 2},
		"each run costs more":          {left: time.Hour, costs: []float64{280, 280}, again: 2, fails: true},
		"time for one more run alone":  {left: 100 * time.Second, costs: []float64{280}, again: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			results := []result{
				waiting("a", 100, 200), waiting("b", 100, 190), waiting("c", 100, 205), waiting("d", 100, 200), waiting("e", 100, 210),
				waiting("small", 5, 50), waiting("grown", 100, 280), waiting("a little", 100, 230), waiting("a few seconds", 21, 51), waiting("f", 100, 195),
				{job: job{Title: "computes", Kind: kindCompute, Expected: cost{CPU: 100}}, Cost: cost{CPU: 900}},
			}
			results[6].Took = map[string]time.Duration{"TestOld": 20 * time.Second, "TestNew": 8 * time.Second, "TestSame": 9 * time.Second}
			results[6].ExpectedTook = map[string]time.Duration{"TestOld": 10 * time.Second, "TestSame": 9 * time.Second}
			var out bytes.Buffer
			left, again := test.left, []string(nil)
			checkGrowth(t.Context(), results, func() time.Duration { return left }, func(_ context.Context, j job) result {
				left -= 100 * time.Second
				again = append(again, j.Title)
				return result{job: j, Cost: cost{CPU: test.costs[len(again)-1]}}
			}, &out)
			printed := out.String()
			if !strings.Contains(printed, "grown has grown: 280 processor seconds, expected 205") ||
				!strings.Contains(printed, "TestOld 20 s (10 s before), TestNew 8 s (new)\n") || strings.Count(printed, "has grown") != 1 {
				t.Errorf("printed: %s", printed)
			}
			if !slices.Equal(again, slices.Repeat([]string{"grown"}, test.again)) {
				t.Errorf("run again: %v, expected %d times", again, test.again)
			}
			for _, r := range results {
				if (r.Err != nil) != (test.fails && r.Title == "grown") {
					t.Errorf("%s ends with %v", r.Title, r.Err)
				}
			}
		})
	}
}

// TestGrowth_FailedRun shows that no job runs again when the run has failed: it would take time, and change nothing.
func TestGrowth_FailedRun(t *testing.T) {
	results := []result{
		{job: job{Title: "failed", Kind: kindWait}, Err: errors.New("failed")},
		{job: job{Title: "grown", Kind: kindWait, Expected: cost{CPU: 100}}, Cost: cost{CPU: 200}},
	}
	var out bytes.Buffer
	checkGrowth(t.Context(), results, func() time.Duration { return time.Hour }, func(context.Context, job) result {
		t.Error("a job runs again")
		return result{}
	}, &out)
	if !strings.Contains(out.String(), "grown has grown") {
		t.Errorf("printed: %s", out.String())
	}
}
