// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command run runs the jobs of a test run, several at a time, and prints the cost of each. hack/test.sh writes the jobs to its standard input, a
// line for each: TITLE, a tab, KIND, a tab, and a command of bash. KIND is one of
//
//	wait     it mostly waits for the servers that it starts: as many run at a time as the cores can serve, according to their figures and to
//	         the idle share of the cores, and those that take longest run first
//	compute  it computes: one runs at a time, with the processor time that the others leave
//
// The expected cost of a job is read from figures.tsv, which --record replaces. For a job that has ended, run prints the line
//
//	=== TITLE: passed (SECONDS s, N processor seconds, N kube-apiservers)
//
// below its output, and at the end of the run the failed tests with their last messages. A job of the kind wait that costs 15 % more processor
// seconds than its figure runs again, alone, if it is expected to end within the time of --limit-growth. It fails if it then costs 10 % more than its
// figure. run exits with 1 if a job has failed.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// progress is the interval at which run prints the running jobs.
const progress = time.Minute

// measured is the time over which the idle share of the cores is measured.
const measured = 10 * time.Second

// spareCores is the number of idle cores that is required to start another job beside those that wait. On a machine where everything takes twice the
// processor time of the figures, as many jobs as fit according to these would make each other exceed their time limits.
const spareCores = 0.5

func main() {
	if len(os.Args) > 2 && os.Args[1] == superviseArg {
		os.Exit(supervise(os.Args[2], os.Args[3]))
	}
	figuresFile := flag.String("figures", "test/run/figures.tsv", "What jobs have cost before.")
	record := flag.Bool("record", false, "Write what the jobs cost to the file of the flag --figures.")
	limitGrowth := flag.Duration("limit-growth", 0, "How long after the beginning of the run a job may end that runs again because it costs more "+
		"than its figure allows. None does with --record.")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, os.Stdin, os.Stdout, *figuresFile, *record, *limitGrowth); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// job is a command of a run.
type job struct {
	Title, Kind, Command string
	// Expected is the cost of the job in figures.tsv, or zero if it is not set there.
	Expected cost
	// ExpectedTook are the durations of its tests in figures.tsv.
	ExpectedTook map[string]time.Duration
}

// Kinds of jobs.
const (
	kindWait    = "wait"
	kindCompute = "compute"
)

// readJobs reads jobs in the format that hack/test.sh writes.
func readJobs(in io.Reader) (jobs []job, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), "\t", 3)
		if len(fields) != 3 || fields[1] != kindWait && fields[1] != kindCompute {
			return nil, fmt.Errorf("job %q: expected TITLE, a tab, %s or %s, a tab, and a command", lines.Text(), kindWait, kindCompute)
		}
		jobs = append(jobs, job{Title: fields[0], Kind: fields[1], Command: fields[2]})
	}
	return jobs, lines.Err()
}

// result is the outcome of a job.
type result struct {
	job
	Cost     cost
	Err      error
	Output   []byte
	Failures []failure
	// Took are the durations of its tests.
	Took map[string]time.Duration
	// Cached reports whether go test has printed results of an earlier run.
	Cached bool
}

func (r result) outcome() string {
	if r.Err != nil {
		return fmt.Sprintf("FAILED (%v) (%s)", r.Err, r.Cost)
	}
	return fmt.Sprintf("passed (%s)", r.Cost)
}

func run(ctx context.Context, in io.Reader, out io.Writer, figuresFile string, record bool, limitGrowth time.Duration) error {
	jobs, err := readJobs(in)
	if err != nil {
		return err
	}
	known, err := readFigures(figuresFile)
	if err != nil {
		return err
	}
	for i := range jobs {
		jobs[i].Expected, jobs[i].ExpectedTook = known[jobs[i].Title], tookOf(known, jobs[i].Title)
	}
	started := time.Now()
	results := schedule(ctx, jobs, runtime.NumCPU(), newIdleMeter(), execute, out)
	if record {
		limitGrowth = 0
	}
	checkGrowth(ctx, results, func() time.Duration { return limitGrowth - time.Since(started) }, execute, out)
	var failed []string
	var total cost
	for _, r := range results {
		total.add(r.Cost)
		setFigures(known, r)
		if r.Err != nil {
			failed = append(failed, r.Title)
		}
	}
	total.Seconds = time.Since(started).Seconds()
	printFailures(out, results)
	fmt.Fprintf(out, "=== All jobs: %s, %.0f %% of %d cores\n", total, 100*total.CPU/total.Seconds/float64(runtime.NumCPU()), runtime.NumCPU())
	if record && len(failed) == 0 {
		err = writeFigures(figuresFile, known)
	}
	if len(failed) > 0 {
		return fmt.Errorf("%s failed: the lines above with FAIL say where", strings.Join(failed, ", "))
	}
	return err
}

// execute runs a job under a supervisor, which kills the processes that the job leaves behind and adds up the cost.
func execute(ctx context.Context, j job) (r result) {
	r.job = j
	reader, writer, err := os.Pipe()
	if err != nil {
		r.Err = err
		return r
	}
	defer reader.Close()
	self, err := os.Executable()
	if err != nil {
		r.Err = err
		return r
	}
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, self, superviseArg, j.Kind, j.Command)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &output, &output, []*os.File{writer}
	started := time.Now()
	r.Err = cmd.Start()
	writer.Close()
	if r.Err != nil {
		return r
	}
	costs, _ := io.ReadAll(reader)
	r.Err = cmd.Wait()
	_ = json.Unmarshal(costs, &r.Cost) // a killed supervisor has not written it
	r.Cost.Seconds = time.Since(started).Seconds()
	r.Output, r.Failures, r.Took = readEvents(output.Bytes())
	r.Cached = bytes.Contains(r.Output, []byte("\t(cached)"))
	return r
}

// schedule runs jobs until all have ended, and prints the output of each when it ends. The function idle returns the average number of idle cores
// since its last call.
func schedule(ctx context.Context, jobs []job, cores int, idle func() float64, execute func(context.Context, job) result, out io.Writer) (results []result) {
	pending := slices.Clone(jobs)
	slices.SortStableFunc(pending, func(a, b job) int { return maxFirst(a, b) })
	var running []job
	began := map[string]time.Time{}
	done := make(chan result)
	ticker := time.NewTicker(progress)
	defer ticker.Stop()
	measures := time.NewTicker(measured)
	defer measures.Stop()
	spare := false
	for len(pending)+len(running) > 0 {
		for i := 0; i < len(pending); {
			if ctx.Err() != nil || !fits(pending[i], running, cores, spare) {
				i++
				continue
			}
			j := pending[i]
			pending = slices.Delete(pending, i, i+1)
			running = append(running, j)
			began[j.Title] = time.Now()
			spare = spare && j.Kind == kindCompute // its load is not measured yet
			go func() { done <- execute(ctx, j) }()
		}
		if len(running) == 0 { // interrupted
			for _, j := range pending {
				results = append(results, result{job: j, Err: ctx.Err()})
			}
			return results
		}
		select {
		case r := <-done:
			running = slices.DeleteFunc(running, func(j job) bool { return j.Title == r.Title })
			results = append(results, r)
			fmt.Fprintf(out, "%s=== %s: %s\n", r.Output, r.Title, r.outcome())
		case <-measures.C:
			spare = idle() >= spareCores
		case <-ticker.C:
			var titles []string
			for _, j := range running {
				titles = append(titles, fmt.Sprintf("%s (%.0f s)", j.Title, time.Since(began[j.Title]).Seconds()))
			}
			fmt.Fprintf(out, "... %d of %d jobs done, running: %s\n", len(results), len(jobs), strings.Join(titles, ", "))
		}
	}
	return results
}

// maxFirst orders jobs. A job without a figure comes first, because it may be long.
func maxFirst(a, b job) int {
	length := func(j job) float64 {
		if j.Expected.Seconds == 0 {
			return 1e9
		}
		return j.Expected.Seconds
	}
	switch la, lb := length(a), length(b); {
	case la > lb:
		return -1
	case la < lb:
		return 1
	}
	return 0
}

// fits reports whether a job can start beside those that run. Jobs that wait may need all cores together. There is at most one more of them than
// cores, so that the servers that they wait for are not slowed down too much, and they start only while some cores are spare. Jobs that compute run
// one at a time.
func fits(j job, running []job, cores int, spare bool) bool {
	if j.Kind == kindCompute {
		return !slices.ContainsFunc(running, func(r job) bool { return r.Kind == kindCompute })
	}
	load, n := j.Expected.load(), 0
	for _, r := range running {
		if r.Kind == kindWait {
			load += r.Expected.load()
			n++
		}
	}
	return n == 0 || spare && n <= cores && load <= float64(cores)
}
