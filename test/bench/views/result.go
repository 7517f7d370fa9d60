// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"fmt"
	"io"
	"time"

	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// Result is the result for what a user may see of the clusters by set.
type Result struct {
	// First is the time of the first request, in milliseconds, and Before and After are the memory of hub-apiserver.
	First  float64   `json:"firstMilliseconds"`
	Before kit.Usage `json:"beforeKiB"`
	After  kit.Usage `json:"afterKiB"`
	// PerCluster is the difference, divided by the number of clusters.
	PerCluster kit.UsageEach `json:"perClusterKiB"`
	Lists      []listResult  `json:"lists"`
}

type listResult struct {
	Of       string  `json:"of"`
	Name     string  `json:"name"`
	Count    int     `json:"count"`
	Median   float64 `json:"medianMilliseconds"`
	P99      float64 `json:"p99Milliseconds"`
	CPU      float64 `json:"hubAPIServerCPUMillisecondsEach"`
	Bytes    int     `json:"bytes"`
	ToMember float64 `json:"timeToMembers"`
	ToPlain  float64 `json:"timeToStoredClusters"`
	// CPUToMember and CPUToPlain are the same ratios of hub-apiserver's processor time.
	CPUToMember float64 `json:"cpuToMembers"`
	CPUToPlain  float64 `json:"cpuToStoredClusters"`
}

func newResult(clusters int, first time.Duration, before, after kit.Usage) *Result {
	return &Result{First: kit.Milliseconds(first), Before: before, After: after, PerCluster: after.Each(before, clusters, 2)}
}

// add adds the results of one way.
func (r *Result) add(v *comparison) {
	cpu := func(l *kit.Listing) float64 { return l.CPU.Per(len(l.Latency))["hub-apiserver"] }
	for _, l := range []*kit.Listing{v.clusters, v.members, v.plain} {
		r.Lists = append(r.Lists, listResult{
			Of: v.of, Name: l.Name, Count: len(l.Latency), Bytes: l.Bytes,
			Median: kit.Milliseconds(l.Latency.Median()), P99: kit.Milliseconds(l.Latency.P99()), CPU: cpu(l),
			ToMember: kit.Round(kit.PairedRatio(l.PerRound, v.members.PerRound), 2), ToPlain: kit.Round(kit.PairedRatio(l.PerRound, v.plain.PerRound), 2),
			CPUToMember: kit.Round(kit.Ratio(cpu(l), cpu(v.members)), 2), CPUToPlain: kit.Round(kit.Ratio(cpu(l), cpu(v.plain)), 2),
		})
	}
}

// Print prints the result, unless it is nil.
func (r *Result) Print(out io.Writer) {
	if r == nil {
		return
	}
	mib := func(kib int) string { return fmt.Sprintf("%.1f", float64(kib)/1024) }
	kit.PrintTable(out, fmt.Sprintf("(j) hub-apiserver's memory around the first list of clusters by the view, which took %.0f ms", r.First),
		[]string{"", "MiB before", "after", "KiB/cluster"}, [][]string{
			{"live heap", mib(r.Before.Heap), mib(r.After.Heap), fmt.Sprintf("%.2f", r.PerCluster.Heap)},
			{"RSS", mib(r.Before.RSS), mib(r.After.RSS), fmt.Sprintf("%.2f", r.PerCluster.RSS)},
			{"not of files", mib(r.Before.Anon), mib(r.After.Anon), fmt.Sprintf("%.2f", r.PerCluster.Anon)},
		})
	var rows [][]string
	for _, l := range r.Lists {
		rows = append(rows, []string{
			l.Of, l.Name, fmt.Sprintf("%.2f", l.Median), fmt.Sprintf("%.2f", l.P99), fmt.Sprintf("%.2f", l.CPU), fmt.Sprint(l.Bytes / 1000),
			fmt.Sprintf("%.2fx, %.2fx", l.ToMember, l.CPUToMember), fmt.Sprintf("%.2fx, %.2fx", l.ToPlain, l.CPUToPlain),
		})
	}
	kit.PrintTable(out, "(j) what a user sees by one set, direct: the whole body read, not decoded, JSON",
		[]string{"", "", "median ms", "p99 ms", "hub-apiserver CPU ms", "KB", "time, CPU to members", "to stored clusters"}, rows)
}
