// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
)

// worksResult is the result for works that are stored and watched.
type worksResult struct {
	Clusters int            `json:"clusters"`
	Created  []writeResult  `json:"created,omitempty"`
	Memory   []worksMemory  `json:"memory,omitempty"`
	Watched  []worksWatched `json:"watched,omitempty"`
	Writes   []writeResult  `json:"writes,omitempty"`
	// CreateFactor and StatusFactor are the ratios of the processor time of one write to the peer's.
	CreateFactor float64 `json:"createCPUToPeer"`
	StatusFactor float64 `json:"statusCPUToPeer"`
}

// worksMemory is the memory of some objects or watches.
type worksMemory struct {
	Works  int    `json:"works,omitempty"`
	Before memory `json:"beforeKiB"`
	After  memory `json:"afterKiB"`
}

// per returns the memory per each of n in a process, in KiB.
func (m *worksMemory) per(process string, n int) usageEach {
	return m.After[process].each(m.Before[process], n, 2)
}

type worksWatched struct {
	Watchers int                `json:"watchers"`
	Opening  float64            `json:"openingSeconds"`
	CPU      map[string]float64 `json:"openingCPUMillisecondsEach"`
	Memory   worksMemory        `json:"memory"`
	Writes   int                `json:"writes"`
	Took     float64            `json:"seconds"`
	// Median and P99 are from the write until its event, WriteMedian and WriteP99 until its response.
	Median      float64            `json:"eventMedianMilliseconds"`
	P99         float64            `json:"eventP99Milliseconds"`
	WriteMedian float64            `json:"writeMedianMilliseconds"`
	WriteP99    float64            `json:"writeP99Milliseconds"`
	WriteCPU    map[string]float64 `json:"writeCPUMillisecondsEach"`
}

// growth returns the ratio of the memory of one more work in hub-apiserver and its etcd in the last stage to that in the first stage: 1 if it grows
// linearly.
func (w *worksResult) growth() float64 {
	if len(w.Memory) < 2 {
		return 0
	}
	first, last := w.Memory[0], w.Memory[len(w.Memory)-1]
	more := worksMemory{Before: first.After, After: last.After}
	return round(ratio(more.per("hub-apiserver", last.Works-first.Works).Heap, first.per("hub-apiserver", first.Works).Heap), 2)
}

func (w *worksResult) print(out io.Writer) {
	if w == nil {
		return
	}
	var rows [][]string
	for _, m := range w.Memory {
		for _, process := range []string{"hub-apiserver", "hub-etcd"} {
			each := m.per(process, m.Works)
			rows = append(rows, []string{fmt.Sprint(m.Works), process, fmt.Sprintf("%.1f", each.RSS), fmt.Sprintf("%.1f", each.Anon), fmt.Sprintf("%.1f", each.Heap),
				fmt.Sprintf("%.0f", float64(m.Before[process].RSS)/1024), fmt.Sprintf("%.0f", float64(m.After[process].RSS)/1024)})
		}
	}
	table(out, fmt.Sprintf("(l) memory of works without a status, %d clusters", w.Clusters),
		[]string{"works", "", "RSS KiB/work", "not of files", "live heap", "RSS MiB before", "after"}, rows)
	rows = nil
	for _, s := range w.Watched {
		each := s.Memory.per("hub-apiserver", s.Watchers)
		rows = append(rows, []string{fmt.Sprint(s.Watchers), fmt.Sprintf("%.1f", s.Opening), fmt.Sprintf("%.1f", each.RSS), fmt.Sprintf("%.1f", each.Heap),
			fmt.Sprintf("%.1f, %.1f", s.Median, s.P99), fmt.Sprintf("%.1f, %.1f", s.WriteMedian, s.WriteP99), fmt.Sprint(s.Writes)})
	}
	table(out, "(l) label of a work to the event at the watch of its cluster, direct", []string{"watches", "opened in s", "RSS KiB/watch", "live heap",
		"event ms: median, p99", "answer ms: median, p99", "writes"}, rows)
	rows = nil
	for _, writes := range [][]writeResult{w.Created, w.Writes} {
		for _, one := range writes {
			rows = append(rows, []string{one.Name + ", " + one.Of, fmt.Sprint(one.Count), fmt.Sprintf("%.0f", one.PerSecond), fmt.Sprintf("%.1f", one.Median),
				fmt.Sprintf("%.1f", one.P99), fmt.Sprintf("%.2f", one.CPUTotal), each(one.CPU)})
		}
	}
	table(out, "(l) writes of works", []string{"", "works", "per s", "median ms", "p99 ms", "CPU ms each", "of which"}, rows)
}

func (w *worksResult) judge(t *targets) {
	if w == nil {
		return
	}
	if len(w.Memory) > 1 {
		t.atMost("l", "live heap of one more work, at the most works to the fewest", "x", 1.2, w.growth())
	}
	for _, s := range w.Watched {
		t.atMost("l", fmt.Sprintf("label to event with %d watches: p99", s.Watchers), " ms", 100, s.P99)
	}
	if len(w.Writes) > 0 {
		t.atMost("l", "CPU of a work's status, to the peer", "x", 1.25, w.StatusFactor)
	}
}
