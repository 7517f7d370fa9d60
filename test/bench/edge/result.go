// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"fmt"
	"io"

	"github.com/clusterhub/clusterhub/test/bench/audit"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// Changes of edge deployments in the report.
const (
	changeFirst      = "all policies, from their creation to their works"
	changePolicy     = "a policy that is for other nodes now"
	changeNode       = "a property of a node that policies ask for"
	changeUnselected = "something of a node that no policy asks for"
	changeMany       = "a property of 1,000 nodes at once, which changes no decision"
)

// Result is the result for edge nodes and policies.
type Result struct {
	Nodes      int `json:"nodes"`
	Policies   int `json:"policies"`
	Namespaces int `json:"namespaces"`
	// Placements is the number after all policies were created, and Pairs the number of pairs of a policy and a node in its sets.
	Placements int `json:"placements"`
	Pairs      int `json:"pairs"`
	// Everything is the processor time for the evaluation of each policy for each node in its sets, without any write.
	Everything float64 `json:"everythingMilliseconds"`
	// Memory is the memory of hub-controller-manager after all policies were created, in KiB.
	Memory  int             `json:"controllersRSS"`
	Changes []*changeResult `json:"changes"`
}

type changeResult struct {
	Name  string `json:"name"`
	Times int    `json:"times"`
	// Seconds is the time until nothing changes any more, for all times together.
	Seconds float64 `json:"seconds"`
	// Decided is the processor time of the decisions alone, with the engine of hub-controller-manager, per change.
	Decided float64 `json:"decidedMilliseconds"`
	// CPU is the time of each process per change, and Own the time of hub-controller-manager, including its writes.
	CPU    map[string]float64 `json:"cpuMillisecondsEach"`
	Own    float64            `json:"controllersCPUMilliseconds"`
	Writes map[string]float64 `json:"writesEach"`
}

// Print prints the result, unless it is nil.
func (e *Result) Print(out io.Writer) {
	if e == nil {
		return
	}
	rows := [][]string{{"evaluating everything, without any write", "", fmt.Sprintf("%.1f", e.Everything), "", "", ""}}
	for _, c := range e.Changes {
		writes := map[string]int{}
		for what, n := range c.Writes {
			writes[what] = int(n*10 + 0.5)
		}
		rows = append(rows, []string{c.Name, fmt.Sprintf("%.1f", c.Seconds), fmt.Sprintf("%.3f", c.Decided), fmt.Sprintf("%.1f", c.Own),
			kit.FormatCPU(c.CPU), audit.FormatEach(writes, 10)})
	}
	kit.PrintTable(out, fmt.Sprintf("(o) %d edge nodes, %d policies of %d namespaces: %d placements of %d pairs; hub-controller-manager has %d MiB",
		e.Nodes, e.Policies, e.Namespaces, e.Placements, e.Pairs, e.Memory>>10), []string{"each", "s, together", "to decide, ms", "controllers' CPU ms", "CPU ms of all", "writes"}, rows)
}

// Judge compares the result with the targets.
func (e *Result) Judge(t *kit.Targets) {
	if e == nil {
		return
	}
	for _, c := range e.Changes {
		switch c.Name {
		case changePolicy, changeNode, changeUnselected:
			t.AtLeast("o", c.Name+": less to decide than to evaluate everything", 50, kit.Round(e.Everything/max(c.Decided, 0.001), 1))
		}
		if c.Name == changeUnselected {
			t.Add("o", c.Name+": writes", "none", fmt.Sprint(c.Writes), len(c.Writes) == 0)
		}
	}
}
