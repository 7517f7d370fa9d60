// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"fmt"
	"io"

	"github.com/clusterhub/clusterhub/test/bench/audit"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// Results are the results for all shapes.
type Results []*shapeResult

// shapeResult is the result for placements of one shape.
type shapeResult struct {
	Shape      string         `json:"shape"`
	Clusters   int            `json:"clusters"`
	Placements int            `json:"placements"`
	Namespaces int            `json:"namespaces"`
	First      *firstResult   `json:"first,omitempty"`
	RestWrites map[string]int `json:"restWrites,omitempty"`
	RestReads  map[string]int `json:"restReads,omitempty"`
	// RestCores is the processor time per time, by process.
	RestCores map[string]float64 `json:"restCores,omitempty"`
	Changes   []changeResult     `json:"changes,omitempty"`
}

type firstResult struct {
	// Made is the time until all placements were created, and Seconds the time until the last decision is written, both from the same start.
	Made    float64 `json:"madeSeconds"`
	Seconds float64 `json:"seconds"`
	// CPU is per placement, including its creation.
	CPU     map[string]float64 `json:"cpuMillisecondsEach"`
	Writes  map[string]int     `json:"writes"`
	Refused map[string]int     `json:"refused,omitempty"`
	// Runs is the number of times that a placement was scheduled.
	Runs int `json:"runs"`
	// Peer and PeerCPU are the times of the peer, which writes nothing.
	Peer    float64 `json:"peerSeconds"`
	PeerCPU float64 `json:"peerCPUSeconds"`
}

type changeResult struct {
	Name  string `json:"name"`
	Tries int    `json:"tries"`
	// Unchanged is the number of them that changed no decision.
	Unchanged int     `json:"unchanged"`
	Median    float64 `json:"lastDecisionMedianMilliseconds"`
	Longest   float64 `json:"lastDecisionLongestMilliseconds"`
	// Decisions is the number of decisions with the changed cluster, and Runs the number of placements that were scheduled, both per change.
	Decisions float64            `json:"decisionsEach"`
	Runs      float64            `json:"runsEach"`
	Writes    map[string]float64 `json:"writesEach"`
	CPU       map[string]float64 `json:"cpuMillisecondsEach"`
	PeerTime  float64            `json:"peerMedianMilliseconds"`
	// OwnCPU and PeerCPU are medians, because a garbage collection happens during some changes only.
	OwnCPU  float64 `json:"controllersCPUMedianMilliseconds"`
	PeerCPU float64 `json:"peerCPUMedianMilliseconds"`
	// FewerRuns and LessCPU are the ratios of the peer's values to ours.
	FewerRuns float64 `json:"timesFewerRunsThanPeer"`
	LessCPU   float64 `json:"timesLessCPUThanPeer"`
}

func (c *placementChange) result(placements int) changeResult {
	each := func(n int) float64 { return kit.Round(float64(n)/float64(c.tries), 1) }
	r := changeResult{
		Name: c.name, Tries: c.tries, Unchanged: c.none, Median: kit.Milliseconds(c.took.Median()), Longest: kit.Milliseconds(c.took.Quantile(1)),
		Decisions: each(c.decisions), Runs: each(c.runs), Writes: map[string]float64{}, CPU: c.cpu.Per(c.tries),
		PeerTime: kit.Milliseconds(c.peer.Median()), OwnCPU: kit.Milliseconds(c.own.Median()), PeerCPU: kit.Milliseconds(c.peerCPU.Median()),
	}
	for what, n := range c.writes {
		r.Writes[what] = each(n)
	}
	// The smallest divisors are one run and a millisecond, so that a ratio is always defined.
	r.FewerRuns = kit.Round(float64(placements)/max(r.Runs, 1), 1)
	r.LessCPU = kit.Round(r.PeerCPU/max(r.OwnCPU, 1), 1)
	return r
}

func (r *changeResult) allWrites() (n float64) {
	for _, of := range r.Writes {
		n += of
	}
	return n
}

// Print prints the results.
func (r Results) Print(out io.Writer) {
	for _, p := range r {
		p.print(out)
	}
}

func (p *shapeResult) print(out io.Writer) {
	var rows [][]string
	if f := p.First; f != nil {
		rows = append(rows, []string{"first scheduling of all",
			fmt.Sprintf("%.1f s, of which %.1f s until all are made; %d runs; for each %s; CPU ms %s; the peer: %.1f s, CPU %.1f s", f.Seconds, f.Made, f.Runs,
				audit.FormatEach(f.Writes, p.Placements), kit.FormatCPU(f.CPU), f.Peer, f.PeerCPU)})
		if len(f.Refused) > 0 {
			rows = append(rows, []string{"  of which the hub refused, for each", audit.FormatEach(f.Refused, p.Placements)})
		}
	}
	if p.RestCores != nil {
		rows = append(rows, []string{fmt.Sprintf("at rest, %s", restWindow), fmt.Sprintf("%s; hub-controller-manager: %.3f cores",
			audit.FormatAll(p.RestWrites, p.RestReads), p.RestCores[kit.ProcControllers])})
	}
	kit.PrintTable(out, fmt.Sprintf("(k) %d placements of %d namespaces, %d clusters: %s", p.Placements, p.Namespaces, p.Clusters, p.Shape), []string{"", ""}, rows)
	rows = nil
	for _, c := range p.Changes {
		took := fmt.Sprintf("%.0f, %.0f", c.Median, c.Longest)
		if c.Unchanged == c.Tries {
			took = "none changes"
		}
		writes := map[string]int{}
		for what, n := range c.Writes {
			writes[what] = int(n*10 + 0.5)
		}
		rows = append(rows, []string{c.Name, took, fmt.Sprintf("%.1f", c.Decisions), fmt.Sprintf("%.1f", c.Runs), fmt.Sprintf("%.1fx", c.FewerRuns),
			fmt.Sprintf("%.1f", c.OwnCPU), fmt.Sprintf("%.1f", c.PeerCPU), fmt.Sprintf("%.1fx", c.LessCPU), kit.FormatCPU(c.CPU), audit.FormatEach(writes, 10)})
	}
	kit.PrintTable(out, "(k) one change: "+p.Shape, []string{"", "ms to the last decision: median, longest", "decisions with the cluster",
		"placements run", "fewer than peer",
		"controllers' CPU ms, median", "peer's", "less than peer", "CPU ms of all", "writes"}, rows)
}

// changeLimit is the time limit for one change to be in all decisions, in seconds: if only the placements of a set are affected, and if all are.
var changeLimit = map[string]float64{shapeTeams: 1, shapeWhole: 10}

// Judge compares the results with the targets.
func (r Results) Judge(t *kit.Targets) {
	for _, p := range r {
		if p.First != nil {
			t.AtMost("k", p.Shape+": first scheduling of all", " s", 60, p.First.Seconds)
		}
		if p.RestCores != nil {
			t.Add("k", p.Shape+": writes at rest", "none", fmt.Sprint(audit.Sum(p.RestWrites)), audit.Sum(p.RestWrites) == 0)
		}
		for _, c := range p.Changes {
			what := p.Shape + ": " + c.Name
			if c.Name == changeOther {
				t.Add("k", what+": writes", "none", fmt.Sprintf("%.1f", c.allWrites()), c.allWrites() == 0)
			} else if c.Unchanged < c.Tries {
				t.AtMost("k", what+": until the last decision, the longest", " s", changeLimit[p.Shape], c.Longest/1000)
			}
			// The peer writes nothing, and gets no events. If each placement chooses from the whole fleet, each must be evaluated.
			looks, cpu := float64(p.Namespaces)/2, 1.0
			if c.Name == changeOther {
				looks, cpu = float64(p.Placements), 10
			}
			t.AtLeast("k", what+": fewer placements looked at than by the peer", max(looks, 1), c.FewerRuns)
			t.AtLeast("k", what+": less CPU than the peer", cpu, c.LessCPU)
		}
	}
}
