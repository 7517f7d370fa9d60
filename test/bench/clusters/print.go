// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"fmt"
	"io"

	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// Print prints the results.
func (r *Results) Print(out io.Writer) {
	r.printLists(out)
	r.printWrites(out)
	r.printMemory(out)
	r.printWatches(out)
	if t := r.Restarts; t != nil {
		kit.PrintTable(out, "(e) restart", []string{"", "s"}, [][]string{
			{"hub-apiserver: start to ready, median", fmt.Sprintf("%.1f", t.Ready/1000)},
			{"hub-apiserver: start to the members through the front", fmt.Sprintf("%.1f", t.Served/1000)},
			{"hub-apiserver: graceful stop", fmt.Sprintf("%.1f", t.Stop/1000)},
			{"peer: start of etcd and kube-apiserver to its first list", fmt.Sprintf("%.1f", t.Peer/1000)},
		})
	}
}

func (r *Results) printLists(out io.Writer) {
	var rows [][]string
	for _, l := range r.Lists {
		rows = append(rows, []string{
			fmt.Sprint(l.Fleet), l.Name, fmt.Sprintf("%.2f", l.Median), fmt.Sprintf("%.2f", l.P99),
			fmt.Sprintf("%.1fx", l.Factor), fmt.Sprint(l.Bytes / 1000), kit.FormatCPU(l.CPU),
		})
	}
	kit.PrintTable(out, "(a) list one set: the whole body read, not decoded, JSON",
		[]string{"clusters", "", "median ms", "p99 ms", "faster than peer", "KB", "CPU ms each"}, rows)
}

func (r *Results) printWrites(out io.Writer) {
	var rows [][]string
	for _, w := range r.Writes {
		rows = append(rows, []string{
			w.Name + ", " + w.Of, fmt.Sprintf("%.0f", w.PerSecond), fmt.Sprintf("%.2fx", w.Factor),
			fmt.Sprintf("%.1f", w.Median), fmt.Sprintf("%.1f", w.P99), fmt.Sprintf("%.2f", w.CPUTotal), kit.FormatCPU(w.CPU),
		})
	}
	kit.PrintTable(out, "(b) writes through the front",
		[]string{"", "per s", "to the peer", "median ms", "p99 ms", "CPU ms each", "of which"}, rows)
}

func (r *Results) printMemory(out io.Writer) {
	for _, m := range r.Memory {
		m.print(out)
	}
}

func (m *memoryResult) print(out io.Writer) {
	var rows [][]string
	for _, name := range []string{"hub-apiserver", "hub-etcd", "kube-apiserver", "etcd", "hub-controller-manager"} {
		each, ok := m.PerCluster[name]
		if !ok {
			continue
		}
		row := []string{name}
		for _, v := range []float64{each.RSS, each.Anon, each.Heap} {
			row = append(row, fmt.Sprintf("%.1f", v))
		}
		for _, u := range []kit.Usage{m.Empty[name], m.Full[name]} {
			row = append(row, fmt.Sprintf("%.0f", float64(u.RSS)/1024))
		}
		rows = append(rows, row)
	}
	kit.PrintTable(out, "(c) memory, "+m.When,
		[]string{"", "RSS KiB/cluster", "not of files", "live heap", "RSS MiB empty", "full"}, rows)
}

func (r *Results) printWatches(out io.Writer) {
	var rows [][]string
	for _, w := range r.Watches {
		rows = append(rows, []string{
			w.Name, fmt.Sprintf("%.2f", w.Median), fmt.Sprintf("%.2f", w.P99), fmt.Sprint(w.Events), fmt.Sprint(w.Lost),
			fmt.Sprintf("%.1f", w.Write),
		})
	}
	if len(rows) > 0 {
		kit.PrintTable(out, fmt.Sprintf("(d) label write's answer to event, %d watches", r.Watches[0].Watchers),
			[]string{"", "median ms", "p99 ms", "events", "lost", "the write, ms"}, rows)
	}
}

// largeFleet is the fleet size from which on the stricter targets apply.
const largeFleet = 100_000

// Judge compares the results with the targets. Those of lists apply from 10,000 clusters on.
func (r *Results) Judge(t *kit.Targets) {
	for _, l := range r.Lists {
		want := 10.0
		if l.Fleet >= largeFleet {
			want = 50
		}
		if l.Fleet < kit.StageSize || l.Fleet != kit.StageSize && l.Fleet != r.fleet {
			continue
		}
		switch l.Name {
		case listMembersDirect:
			t.AtLeast("a", fmt.Sprintf("%s, at %d clusters: faster than the peer", l.Name, l.Fleet), want, l.Factor)
		case listLabelDirect:
			t.AtLeast("a", fmt.Sprintf("%s, at %d clusters: faster than the peer", l.Name, l.Fleet), want/2, l.Factor)
		}
	}
	for _, name := range []string{listMembersDirect, listLabelDirect} {
		small, large := r.list(kit.StageSize, name), r.list(r.fleet, name)
		if small != nil && large != nil && large.Fleet >= largeFleet {
			t.AtMost("a", fmt.Sprintf("%s: time at %d to that at %d", name, large.Fleet, small.Fleet), "x", 1.3,
				kit.Ratio(large.Median, small.Median))
		}
	}
	if len(r.Writes) >= 2 {
		t.AtLeast("b", "creates per second, to the peer", 1, r.Writes[0].Factor)
	}
	for _, m := range r.Memory {
		own, what := m.rss("hub-apiserver", "hub-etcd"), m.When+": hub-apiserver with its etcd, to kube-apiserver"
		t.AtMost("c", what+" alone", "", 1.0/3, kit.Ratio(own, m.rss("kube-apiserver")))
		t.AtMost("c", what+" with its etcd", "", 1.0/3, kit.Ratio(own, m.rss("kube-apiserver", "etcd")))
	}
	for _, w := range r.Watches {
		if w.Name != watchPeer {
			t.AtMost("d", w.Name+": p99", " ms", 100, w.P99)
			if w.Lost > 0 {
				t.Add("d", w.Name+": events lost", "none", fmt.Sprint(w.Lost), false)
			}
		}
	}
	if r.Restarts != nil {
		t.AtMost("e", "start of hub-apiserver to ready, the longest", " s", 30, r.Restarts.Worst/1000)
	}
}

func (r *Results) list(fleet int, name string) *listResult {
	for i := range r.Lists {
		if l := &r.Lists[i]; l.Fleet == fleet && l.Name == name {
			return l
		}
	}
	return nil
}
