// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// growth is the share by which the processor seconds of a job may grow. Less cannot be told from noise: with the same programs, jobs cost
	// between 26 % less and 13 % more than their figures when they ran alone, and up to 42 % more beside others.
	growth = 0.25
	// spread is the processor time by which runs of the same job differ whatever its size, in seconds: that of one start of a hub. A job of half a
	// minute cost 31 seconds in one run and 35 in the next, with the same programs.
	spread = 10
	// runsAlone is the largest number of times that a job runs again. The least of their costs counts, since other processes of the machine add to
	// the cost of a job, and nothing takes away from it: a job cost 663 seconds beside others and 446 alone.
	runsAlone = 2
	// comparable is the least processor time of jobs that are compared, in seconds.
	comparable = 20
	// enough is the least number of jobs that show the speed of the machine.
	enough = 5
	// noted is the least duration of a test with a figure of its own.
	noted = 3 * time.Second
)

// compared reports whether the cost of a job can be compared with its figure. The cost of a job that computes depends on what is cached.
func (r result) compared() bool {
	return r.Err == nil && r.Kind == kindWait && !r.Cached && r.Expected.CPU >= comparable
}

// ratio returns the ratio of the cost of a job to the expected cost.
func (r result) ratio() float64 { return r.Cost.CPU / r.Expected.CPU }

// pace returns the median of the ratios of costs to expected costs: the machine is slower than the one of the figures by this factor. It is 1 if too
// few jobs can be compared.
func pace(results []result) float64 {
	var ratios []float64
	for _, r := range results {
		if r.compared() {
			ratios = append(ratios, r.ratio())
		}
	}
	if len(ratios) < enough {
		return 1
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

// grown reports whether the job cost more than expected by growth and by spread.
func (r result) grown(pace float64) bool {
	expected := r.Expected.CPU * pace
	return r.compared() && r.Cost.CPU > expected*(1+growth) && r.Cost.CPU > expected+spread
}

// checkGrowth prints which jobs have cost too much, the one that has grown most first. It runs each of them again, alone, as long as it costs too
// much and is likely to end within the remaining time, at most runsAlone times. It fails a job that costs too much each time. It runs none if the
// run has failed already.
func checkGrowth(ctx context.Context, results []result, left func() time.Duration, execute func(context.Context, job) result, out io.Writer) {
	pace := pace(results)
	failed := slices.ContainsFunc(results, func(r result) bool { return r.Err != nil })
	var order []int
	for i, r := range results {
		if r.grown(pace) {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return -cmp.Compare(results[a].ratio(), results[b].ratio()) })
	for _, i := range order {
		r := results[i]
		fmt.Fprintf(out, "=== %s has grown: %.0f processor seconds, expected %.0f by figures.tsv at the pace of this run, %.2f. Tests that took longer: %s\n",
			r.Title, r.Cost.CPU, r.Expected.CPU*pace, pace, r.longer())
		for n := 1; n <= runsAlone && !failed && ctx.Err() == nil && left() >= time.Duration(r.Cost.Seconds*float64(time.Second)); n++ {
			again := execute(ctx, r.job)
			grown := again.grown(pace)
			if grown && n == runsAlone {
				again.Err = fmt.Errorf("grown: RECORD=1 makes what it costs the figure, if it has to cost that")
			}
			fmt.Fprintf(out, "%s=== %s, again and alone: %s\n", again.Output, r.Title, again.outcome())
			results[i] = again
			if !grown || again.Err != nil {
				break
			}
		}
	}
}

// longer returns the tests whose duration has grown most, as text.
func (r result) longer() string {
	grew := func(test string) time.Duration { return r.Took[test] - r.ExpectedTook[test] }
	tests := slices.SortedFunc(maps.Keys(r.Took), func(a, b string) int { return cmp.Or(-cmp.Compare(grew(a), grew(b)), cmp.Compare(a, b)) })
	var text []string
	for _, test := range tests {
		if grew(test) < noted || len(text) == 5 {
			break
		}
		before := "new"
		if t, ok := r.ExpectedTook[test]; ok {
			before = fmt.Sprintf("%.0f s before", t.Seconds())
		}
		text = append(text, fmt.Sprintf("%s %.0f s (%s)", test, r.Took[test].Seconds(), before))
	}
	return cmp.Or(strings.Join(text, ", "), "none by a noticeable time")
}
