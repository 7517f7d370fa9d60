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

	"github.com/clusterhub/clusterhub/test/bench/access"
	"github.com/clusterhub/clusterhub/test/bench/clusters"
	"github.com/clusterhub/clusterhub/test/bench/edge"
	"github.com/clusterhub/clusterhub/test/bench/kit"
	"github.com/clusterhub/clusterhub/test/bench/klusterlets"
	"github.com/clusterhub/clusterhub/test/bench/placements"
	"github.com/clusterhub/clusterhub/test/bench/registration"
	"github.com/clusterhub/clusterhub/test/bench/views"
	"github.com/clusterhub/clusterhub/test/bench/works"
)

// report is the result of all measurements. It is written as JSON. Times are in milliseconds, memory in KiB.
type report struct {
	Begun      time.Time  `json:"begun"`
	Conditions conditions `json:"conditions"`
	clusters.Results
	View        *views.Result       `json:"view,omitempty"`
	Joins       registration.Joins  `json:"joins,omitempty"`
	Rest        *registration.Fleet `json:"fleetAtRest,omitempty"`
	Grants      access.Grants       `json:"grants,omitempty"`
	Tokens      access.Tokens       `json:"tokens,omitempty"`
	Placing     placements.Results  `json:"placing,omitempty"`
	Works       *works.Result       `json:"works,omitempty"`
	WorkAgent   *works.AgentResult  `json:"workAgent,omitempty"`
	Klusterlets *klusterlets.Result `json:"klusterlets,omitempty"`
	Edge        *edge.Result        `json:"edge,omitempty"`
	// Failed is why not everything was measured.
	Failed  string      `json:"failed,omitempty"`
	Targets kit.Targets `json:"targets"`
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

func newReport(o kit.Options) *report {
	return &report{Begun: time.Now().UTC(), Conditions: conditions{
		Fleet: o.Fleet, SetSize: kit.SetSize, Processors: runtime.NumCPU(), Go: runtime.Version(), Fsync: !o.NoFsync,
		EmbeddedEtcd: !o.ExternalEtcd, Controllers: !o.ServersOnly, Status: o.Status, Profiled: o.ProfileDir != "",
		ListedVersion: o.ResourceVersion,
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
	// Print prints the result, unless it is nil.
	Print(out io.Writer)
}

// judged is a result that has targets.
type judged interface {
	// Judge adds the targets of the result.
	Judge(t *kit.Targets)
}

// results returns all results in the order in which they are printed.
func (r *report) results() []result {
	return []result{&r.Results, r.View, r.Joins, r.Rest, r.Grants, r.Tokens, r.Placing, r.Edge, r.Works, r.WorkAgent, r.Klusterlets}
}

// judge compares the results with the targets.
func (r *report) judge() {
	for _, one := range r.results() {
		if one, ok := one.(judged); ok {
			one.Judge(&r.Targets)
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
		result.Print(out)
	}
	var rows [][]string
	for _, t := range r.Targets {
		verdict := yes(t.Reached, "reached", "FALLS SHORT")
		rows = append(rows, []string{"(" + t.Part + ") " + t.What, t.Want, t.Got, verdict})
	}
	kit.PrintTable(out, "Targets", []string{"", "wanted", "got", ""}, rows)
}
