// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// cost is the cost of a job.
type cost struct {
	// Seconds is the time from its start to its end.
	Seconds float64
	// CPU is the processor time of all its processes, in seconds.
	CPU float64
	// Starts is the number of kube-apiservers that it has started.
	Starts int
}

// String describes the cost.
func (c cost) String() string {
	return fmt.Sprintf("%.0f s, %.0f processor seconds, %d kube-apiservers", c.Seconds, c.CPU, c.Starts)
}

func (c *cost) add(other cost) {
	c.CPU += other.CPU
	c.Starts += other.Starts
}

// load returns the number of cores that the job keeps busy, or half of one if that is not known.
func (c cost) load() float64 {
	if c.Seconds == 0 {
		return 0.5
	}
	return c.CPU / c.Seconds
}

const figuresHeader = "# Written by hack/test.sh with RECORD=1. What jobs of a whole run cost: TITLE, seconds, processor seconds, kube-apiservers.\n" +
	"# TITLE > TEST is a test of a job, of which the seconds are known alone.\n"

// testTitle returns the title of a test of a job in figures.
func testTitle(job, test string) string { return job + " > " + test }

// tookOf returns the durations of the tests of a job in figures.
func tookOf(figures map[string]cost, job string) map[string]time.Duration {
	took := map[string]time.Duration{}
	for title, c := range figures {
		if test, ok := strings.CutPrefix(title, testTitle(job, "")); ok {
			took[test] = time.Duration(c.Seconds * float64(time.Second))
		}
	}
	return took
}

// setFigures replaces the figures of a job and its tests. It ignores a job with cached results, which costs less than usual.
func setFigures(figures map[string]cost, r result) {
	if _, known := figures[r.Title]; known && r.Cached {
		return
	}
	maps.DeleteFunc(figures, func(title string, _ cost) bool { return strings.HasPrefix(title, testTitle(r.Title, "")) })
	figures[r.Title] = r.Cost
	for test, took := range r.Took {
		if took >= noted {
			figures[testTitle(r.Title, test)] = cost{Seconds: took.Seconds()}
		}
	}
}

// readFigures reads the costs of jobs, by title. A file that does not exist has no figures.
func readFigures(file string) (map[string]cost, error) {
	figures := map[string]cost{}
	data, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return figures, nil
	}
	if err != nil {
		return nil, err
	}
	defer data.Close()
	lines := bufio.NewScanner(data)
	for n := 1; lines.Scan(); n++ {
		if strings.HasPrefix(lines.Text(), "#") || lines.Text() == "" {
			continue
		}
		title, rest, _ := strings.Cut(lines.Text(), "\t")
		var c cost
		if _, err := fmt.Sscanf(rest, "%f\t%f\t%d", &c.Seconds, &c.CPU, &c.Starts); err != nil {
			return nil, fmt.Errorf("%s:%d: expected TITLE, seconds, processor seconds and starts with tabs between: %w", file, n, err)
		}
		figures[title] = c
	}
	return figures, lines.Err()
}

// writeFigures writes the costs of jobs.
func writeFigures(file string, figures map[string]cost) error {
	var text strings.Builder
	text.WriteString(figuresHeader)
	for _, title := range slices.Sorted(maps.Keys(figures)) {
		c := figures[title]
		fmt.Fprintf(&text, "%s\t%.0f\t%.0f\t%d\n", title, c.Seconds, c.CPU, c.Starts)
	}
	return os.WriteFile(file, []byte(text.String()), 0o644)
}
