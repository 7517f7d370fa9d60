// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

func (r *report) print(out io.Writer) {
	c := r.Conditions
	yes := func(b bool, is, not string) string {
		if b {
			return is
		}
		return not
	}
	fmt.Fprintf(out, "\n%d clusters in sets of %d, %d processors. %s; hub-apiserver's etcd is %s; %s; %s.\n",
		c.Fleet, c.SetSize, c.Processors,
		yes(c.Fsync, "All etcds wait for the disk", "No etcd waits for the disk"),
		yes(c.EmbeddedEtcd, "embedded", "outside"),
		yes(c.Controllers, "the controller managers run", "no controller manager runs"),
		yes(c.Status, "each cluster has a status", "clusters have no status"))
	if c.Profiled {
		fmt.Fprintln(out, "hub-apiserver was profiled, which slows it down a little.")
	}
	if r.Failed != "" {
		fmt.Fprintln(out, "Not everything was measured:", r.Failed)
	}
	r.printLists(out)
	r.printWrites(out)
	r.printMemory(out)
	r.printWatches(out)
	if t := r.Restarts; t != nil {
		table(out, "(e) restart", []string{"", "s"}, [][]string{
			{"hub-apiserver: start to ready, median", fmt.Sprintf("%.1f", t.Ready/1000)},
			{"hub-apiserver: start to the members through the front", fmt.Sprintf("%.1f", t.Served/1000)},
			{"hub-apiserver: graceful stop", fmt.Sprintf("%.1f", t.Stop/1000)},
			{"peer: start of etcd and kube-apiserver to its first list", fmt.Sprintf("%.1f", t.Peer/1000)},
		})
	}
	printView(r, out)
	printRegistration(r, out)
	printAccess(r, out)
	printPlacing(r, out)
	printEdge(r, out)
	printWorks(r, out)
	printWorkAgent(r, out)
	printKlusterlets(r, out)
	var rows [][]string
	for _, t := range r.Targets {
		verdict := yes(t.Reached, "reached", "FALLS SHORT")
		rows = append(rows, []string{"(" + t.Part + ") " + t.What, t.Want, t.Got, verdict})
	}
	table(out, "Targets", []string{"", "wanted", "got", ""}, rows)
}

func (r *report) printLists(out io.Writer) {
	var rows [][]string
	for _, l := range r.Lists {
		rows = append(rows, []string{
			fmt.Sprint(l.Fleet), l.Name, fmt.Sprintf("%.2f", l.Median), fmt.Sprintf("%.2f", l.P99),
			fmt.Sprintf("%.1fx", l.Factor), fmt.Sprint(l.Bytes / 1000), each(l.CPU),
		})
	}
	table(out, "(a) list one set: the whole body read, not decoded, JSON",
		[]string{"clusters", "", "median ms", "p99 ms", "faster than peer", "KB", "CPU ms each"}, rows)
}

func (r *report) printWrites(out io.Writer) {
	var rows [][]string
	for _, w := range r.Writes {
		rows = append(rows, []string{
			w.Name + ", " + w.Of, fmt.Sprintf("%.0f", w.PerSecond), fmt.Sprintf("%.2fx", w.Factor),
			fmt.Sprintf("%.1f", w.Median), fmt.Sprintf("%.1f", w.P99), fmt.Sprintf("%.2f", w.CPUTotal), each(w.CPU),
		})
	}
	table(out, "(b) writes through the front",
		[]string{"", "per s", "to the peer", "median ms", "p99 ms", "CPU ms each", "of which"}, rows)
}

func (r *report) printMemory(out io.Writer) {
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
		for _, u := range []usage{m.Empty[name], m.Full[name]} {
			row = append(row, fmt.Sprintf("%.0f", float64(u.RSS)/1024))
		}
		rows = append(rows, row)
	}
	table(out, "(c) memory, "+m.When,
		[]string{"", "RSS KiB/cluster", "not of files", "live heap", "RSS MiB empty", "full"}, rows)
}

func (r *report) printWatches(out io.Writer) {
	var rows [][]string
	for _, w := range r.Watches {
		rows = append(rows, []string{
			w.Name, fmt.Sprintf("%.2f", w.Median), fmt.Sprintf("%.2f", w.P99), fmt.Sprint(w.Events), fmt.Sprint(w.Lost),
			fmt.Sprintf("%.1f", w.Write),
		})
	}
	if len(rows) > 0 {
		table(out, fmt.Sprintf("(d) label write's answer to event, %d watches", r.Watches[0].Watchers),
			[]string{"", "median ms", "p99 ms", "events", "lost", "the write, ms"}, rows)
	}
}

// table prints rows under a title, if there are any.
func table(out io.Writer, title string, header []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		fmt.Fprintln(w, "  "+strings.Join(row, "\t"))
	}
	_ = w.Flush()
}
