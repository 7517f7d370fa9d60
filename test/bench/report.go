// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

// report is the result of all measurements. It is written as JSON. Times are in milliseconds, memory in KiB.
type report struct {
	Begun      time.Time  `json:"begun"`
	Conditions conditions `json:"conditions"`
	clustersResults
	View        *viewResult        `json:"view,omitempty"`
	Joins       joinResults        `json:"joins,omitempty"`
	Rest        *restResult        `json:"fleetAtRest,omitempty"`
	Grants      grantResults       `json:"grants,omitempty"`
	Tokens      tokenResults       `json:"tokens,omitempty"`
	Placing     placingResults     `json:"placing,omitempty"`
	Works       *worksResult       `json:"works,omitempty"`
	WorkAgent   *workAgentResult   `json:"workAgent,omitempty"`
	Klusterlets *klusterletsResult `json:"klusterlets,omitempty"`
	Edge        *edgeResult        `json:"edge,omitempty"`
	// Failed is why not everything was measured.
	Failed  string  `json:"failed,omitempty"`
	Targets targets `json:"targets"`
}

// conditions are the conditions of the measurements.
type conditions struct {
	Fleet         int    `json:"fleet"`
	SetSize       int    `json:"setSize"`
	Processors    int    `json:"processors"`
	Go            string `json:"go"`
	Fsync         bool   `json:"fsync"`
	EmbeddedEtcd  bool   `json:"embeddedEtcd"`
	Controllers   bool   `json:"controllers"`
	Status        bool   `json:"status"`
	Profiled      bool   `json:"profiled"`
	ListedVersion string `json:"listedResourceVersion"`
}

func newReport(o options) *report {
	return &report{Begun: time.Now().UTC(), Conditions: conditions{
		Fleet: o.fleet, SetSize: setSize, Processors: runtime.NumCPU(), Go: runtime.Version(), Fsync: !o.noFsync,
		EmbeddedEtcd: !o.externalEtcd, Controllers: !o.serversOnly, Status: o.status, Profiled: o.profileDir != "",
		ListedVersion: o.resourceVersion,
	}}
}

func (r *report) write(file string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// result is the result of a measurement.
type result interface {
	print(out io.Writer)
}

// judged is a result that has targets.
type judged interface {
	judge(t *targets)
}

// results returns all results in the order in which they are printed.
func (r *report) results() []result {
	return []result{&r.clustersResults, r.View, r.Joins, r.Rest, r.Grants, r.Tokens, r.Placing, r.Edge, r.Works, r.WorkAgent, r.Klusterlets}
}

// judge compares the results with the targets.
func (r *report) judge() {
	for _, one := range r.results() {
		if one, ok := one.(judged); ok {
			one.judge(&r.Targets)
		}
	}
}

// print prints the conditions, the results and the targets.
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
	for _, result := range r.results() {
		result.print(out)
	}
	var rows [][]string
	for _, t := range r.Targets {
		verdict := yes(t.Reached, "reached", "FALLS SHORT")
		rows = append(rows, []string{"(" + t.Part + ") " + t.What, t.Want, t.Got, verdict})
	}
	table(out, "Targets", []string{"", "wanted", "got", ""}, rows)
}
