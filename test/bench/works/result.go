// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package works

import (
	"fmt"
	"io"

	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// Result is the result for works that are stored and watched.
type Result struct {
	Clusters int               `json:"clusters"`
	Created  []kit.WriteResult `json:"created,omitempty"`
	Memory   []memoryResult    `json:"memory,omitempty"`
	Watched  []watchResult     `json:"watched,omitempty"`
	Writes   []kit.WriteResult `json:"writes,omitempty"`
	// CreateFactor and StatusFactor are the ratios of the processor time of one write to the peer's.
	CreateFactor float64 `json:"createCPUToPeer"`
	StatusFactor float64 `json:"statusCPUToPeer"`
}

// memoryResult is the memory of some objects or watches.
type memoryResult struct {
	Works  int        `json:"works,omitempty"`
	Before kit.Memory `json:"beforeKiB"`
	After  kit.Memory `json:"afterKiB"`
}

// per returns the memory per each of n in a process, in KiB.
func (m *memoryResult) per(process string, n int) kit.UsageEach {
	return m.After[process].Each(m.Before[process], n, 2)
}

type watchResult struct {
	Watchers int                `json:"watchers"`
	Opening  float64            `json:"openingSeconds"`
	CPU      map[string]float64 `json:"openingCPUMillisecondsEach"`
	Memory   memoryResult       `json:"memory"`
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
func (w *Result) growth() float64 {
	if len(w.Memory) < 2 {
		return 0
	}
	first, last := w.Memory[0], w.Memory[len(w.Memory)-1]
	more := memoryResult{Before: first.After, After: last.After}
	return kit.Round(kit.Ratio(more.per("hub-apiserver", last.Works-first.Works).Heap, first.per("hub-apiserver", first.Works).Heap), 2)
}

// Print prints the result, unless it is nil.
func (w *Result) Print(out io.Writer) {
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
	kit.PrintTable(out, fmt.Sprintf("(l) memory of works without a status, %d clusters", w.Clusters),
		[]string{"works", "", "RSS KiB/work", "not of files", "live heap", "RSS MiB before", "after"}, rows)
	rows = nil
	for _, s := range w.Watched {
		each := s.Memory.per("hub-apiserver", s.Watchers)
		rows = append(rows, []string{fmt.Sprint(s.Watchers), fmt.Sprintf("%.1f", s.Opening), fmt.Sprintf("%.1f", each.RSS), fmt.Sprintf("%.1f", each.Heap),
			fmt.Sprintf("%.1f, %.1f", s.Median, s.P99), fmt.Sprintf("%.1f, %.1f", s.WriteMedian, s.WriteP99), fmt.Sprint(s.Writes)})
	}
	kit.PrintTable(out, "(l) label of a work to the event at the watch of its cluster, direct", []string{"watches", "opened in s", "RSS KiB/watch", "live heap",
		"event ms: median, p99", "answer ms: median, p99", "writes"}, rows)
	rows = nil
	for _, writes := range [][]kit.WriteResult{w.Created, w.Writes} {
		for _, one := range writes {
			rows = append(rows, []string{one.Name + ", " + one.Of, fmt.Sprint(one.Count), fmt.Sprintf("%.0f", one.PerSecond), fmt.Sprintf("%.1f", one.Median),
				fmt.Sprintf("%.1f", one.P99), fmt.Sprintf("%.2f", one.CPUTotal), kit.FormatCPU(one.CPU)})
		}
	}
	kit.PrintTable(out, "(l) writes of works", []string{"", "works", "per s", "median ms", "p99 ms", "CPU ms each", "of which"}, rows)
}

// Judge compares the result with the targets.
func (w *Result) Judge(t *kit.Targets) {
	if w == nil {
		return
	}
	if len(w.Memory) > 1 {
		t.AtMost("l", "live heap of one more work, at the most works to the fewest", "x", 1.2, w.growth())
	}
	for _, s := range w.Watched {
		t.AtMost("l", fmt.Sprintf("label to event with %d watches: p99", s.Watchers), " ms", 100, s.P99)
	}
	if len(w.Writes) > 0 {
		t.AtMost("l", "CPU of a work's status, to the peer", "x", 1.25, w.StatusFactor)
	}
}
