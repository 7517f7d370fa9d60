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
)

// cost is what a job takes.
type cost struct {
	// Seconds is the time from its start to its end.
	Seconds float64
	// CPU is the processor time of all its processes, in seconds.
	CPU float64
	// Starts is the number of kube-apiservers that it has started.
	Starts int
}

// String returns the cost for people.
func (c cost) String() string {
	return fmt.Sprintf("%.0f s, %.0f processor seconds, %d kube-apiservers", c.Seconds, c.CPU, c.Starts)
}

func (c *cost) add(other cost) {
	c.CPU += other.CPU
	c.Starts += other.Starts
}

// load returns how many cores the job keeps busy, half of one if that is not known.
func (c cost) load() float64 {
	if c.Seconds == 0 {
		return 0.5
	}
	return c.CPU / c.Seconds
}

// growth is the share by which processor seconds may grow before it is said.
const growth = 0.1

// against returns a note if the job costs noticeably more than it did; a job of a few seconds is not compared.
func (c cost) against(expected cost) string {
	if expected.CPU < 10 || c.CPU < expected.CPU*(1+growth) {
		return ""
	}
	return fmt.Sprintf("; %.0f %% more processor seconds than the %.0f of figures.tsv", 100*(c.CPU/expected.CPU-1), expected.CPU)
}

const figuresHeader = "# Written by hack/test.sh with RECORD=1. What jobs of a whole run took: TITLE, seconds, processor seconds, kube-apiservers.\n"

// readFigures reads what jobs have cost, by title. A file that does not exist has no figures.
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

// writeFigures writes what jobs have cost.
func writeFigures(file string, figures map[string]cost) error {
	var text strings.Builder
	text.WriteString(figuresHeader)
	for _, title := range slices.Sorted(maps.Keys(figures)) {
		c := figures[title]
		fmt.Fprintf(&text, "%s\t%.0f\t%.0f\t%d\n", title, c.Seconds, c.CPU, c.Starts)
	}
	return os.WriteFile(file, []byte(text.String()), 0o644)
}
