// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/clusterhub/clusterhub/test/bench/audit"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// Joins are the results for the ways of joining.
type Joins []joinResult

// joinResult is the result for clusters that joined at the same time.
type joinResult struct {
	How       string  `json:"how"`
	Clusters  int     `json:"clusters"`
	Ready     int     `json:"ready"`
	PerSecond float64 `json:"joinsPerSecond"`
	// These are seconds from the creation of a cluster.
	AcceptedMedian float64 `json:"acceptedMedianSeconds"`
	AcceptedP99    float64 `json:"acceptedP99Seconds"`
	ReadyMedian    float64 `json:"readyMedianSeconds"`
	ReadyP99       float64 `json:"readyP99Seconds"`
	// Steady is the time from the start until all conditions of all clusters are set.
	Steady float64 `json:"steadySeconds"`
	// Lost are conditions that were True and then were not.
	Lost []string `json:"lostConditions,omitempty"`
	// Writes and Reads are the requests of hub-controller-manager to the hub, and Refused those that were rejected.
	Writes  map[string]int `json:"writes"`
	Reads   map[string]int `json:"reads"`
	Refused map[string]int `json:"refused,omitempty"`
	// AWSMost is the largest number of AWS calls for one cluster, and AWSAll the number for all.
	AWSMost int                `json:"awsCallsMostPerCluster,omitempty"`
	AWSAll  int                `json:"awsCalls,omitempty"`
	CPU     map[string]float64 `json:"cpuMillisecondsEach"`
}

// Fleet is the result for a fleet without changes.
type Fleet struct {
	Clusters  int                `json:"clusters"`
	Interval  float64            `json:"driftCheckIntervalSeconds"`
	Accepting float64            `json:"acceptingSeconds"`
	Writes    map[string]int     `json:"acceptingWrites"`
	Refused   map[string]int     `json:"acceptingRefused,omitempty"`
	CPU       map[string]float64 `json:"acceptingCPUMillisecondsEach"`
	Rest      *windowResult      `json:"rest,omitempty"`
	Restarted *windowResult      `json:"restarted,omitempty"`
	Gap       float64            `json:"shortestTimeBetweenChecksSeconds"`
	Lost      []string           `json:"lostConditions,omitempty"`
	Silent    *silentResult      `json:"silent,omitempty"`
}

type windowResult struct {
	Seconds float64        `json:"seconds"`
	Writes  map[string]int `json:"writes,omitempty"`
	Reads   map[string]int `json:"reads,omitempty"`
	// AWSCalls are all calls, AWSWrites those that change something, and Checks the clusters that were checked in each part.
	AWSCalls  int   `json:"awsCalls"`
	AWSWrites int   `json:"awsWrites"`
	Checks    []int `json:"checksInEqualTimes"`
	// Cores is the processor time per time, by process.
	Cores map[string]float64 `json:"cores"`
	RSS   int                `json:"rssKiB"`
}

type silentResult struct {
	Clusters int                `json:"clusters"`
	First    float64            `json:"firstSeconds"`
	Last     float64            `json:"lastSeconds"`
	Tainted  float64            `json:"lastTaintSeconds"`
	Writes   map[string]int     `json:"writes"`
	Reads    map[string]int     `json:"reads"`
	Refused  map[string]int     `json:"refused,omitempty"`
	CPU      map[string]float64 `json:"cpuMillisecondsEach"`
}

func (j *joinRun) result() joinResult {
	result := joinResult{
		How: j.how, Clusters: j.clusters, Ready: len(j.ready), PerSecond: kit.Round(float64(len(j.ready))/j.took.Seconds(), 1),
		AcceptedMedian: kit.Seconds(j.accepted.Median()), AcceptedP99: kit.Seconds(j.accepted.P99()),
		ReadyMedian: kit.Seconds(j.ready.Median()), ReadyP99: kit.Seconds(j.ready.P99()), Steady: kit.Seconds(j.steady),
		Lost: j.lost, Writes: j.requests.Writes(), Reads: j.requests.Reads(), Refused: j.requests.Refused(), CPU: j.cpu.Per(j.clusters),
	}
	result.AWSMost, result.AWSAll = j.calls.most()
	return result
}

func (f *fleetRun) result() *Fleet {
	result := &Fleet{
		Clusters: f.clusters, Interval: kit.Seconds(f.interval), Accepting: kit.Seconds(f.accepting), Writes: f.acceptRequests.Writes(),
		Refused: f.acceptRequests.Refused(), CPU: f.acceptCPU.Per(f.clusters), Gap: kit.Seconds(f.gap), Lost: f.lost,
		Rest: f.rest.result(), Restarted: f.restarted.result(),
	}
	if f.silentCPU != nil {
		result.Silent = &silentResult{
			Clusters: f.silent, First: kit.Seconds(f.silentFirst), Last: kit.Seconds(f.silentLast), Tainted: kit.Seconds(f.tainted),
			Writes: f.silentRequests.Writes(), Reads: f.silentRequests.Reads(), Refused: f.silentRequests.Refused(),
			CPU: f.silentCPU.Per(f.clusters),
		}
	}
	return result
}

func (w *window) result() *windowResult {
	if w == nil {
		return nil
	}
	result := &windowResult{Seconds: kit.Seconds(w.took), Writes: w.requests.Writes(), Reads: w.requests.Reads(), AWSCalls: w.calls,
		AWSWrites: w.writes, Checks: w.checks, Cores: map[string]float64{}, RSS: w.rss}
	for name, used := range w.cpu {
		result.Cores[name] = kit.Round(used.Seconds()/w.took.Seconds(), 3)
	}
	return result
}

// Print prints the results.
func (r Joins) Print(out io.Writer) {
	var rows [][]string
	for _, j := range r {
		rows = append(rows, []string{
			j.How, fmt.Sprint(j.Clusters), fmt.Sprintf("%.1f", j.PerSecond),
			fmt.Sprintf("%.2f", j.AcceptedMedian), fmt.Sprintf("%.2f", j.AcceptedP99),
			fmt.Sprintf("%.2f", j.ReadyMedian), fmt.Sprintf("%.2f", j.ReadyP99), fmt.Sprintf("%.1f", j.Steady), kit.FormatCPU(j.CPU),
		})
	}
	kit.PrintTable(out, "(f) clusters that join at the same time; seconds from a cluster's creation", []string{"", "clusters", "joins per s",
		"accepted median", "p99", "ready median", "p99", "all steady after s", "CPU ms each"}, rows)
	for _, j := range r {
		fmt.Fprintf(out, "  %s, requests of hub-controller-manager for each: %.1f writes (%s), %.1f reads (%s)\n", j.How,
			float64(audit.Sum(j.Writes))/float64(j.Clusters), audit.FormatEach(j.Writes, j.Clusters),
			float64(audit.Sum(j.Reads))/float64(j.Clusters), audit.FormatEach(j.Reads, j.Clusters))
		if len(j.Refused) > 0 {
			fmt.Fprintf(out, "    of which the hub refused, for each: %s\n", audit.FormatEach(j.Refused, j.Clusters))
		}
	}
}

// Print prints the result, unless it is nil.
func (f *Fleet) Print(out io.Writer) {
	if f == nil {
		return
	}
	rows := [][]string{{"accepted from the beginning, until all of them have all",
		fmt.Sprintf("%.1f s, %.0f/s; for each %s; CPU ms %s", f.Accepting, float64(f.Clusters)/f.Accepting,
			audit.FormatEach(f.Writes, f.Clusters), kit.FormatCPU(f.CPU))}}
	if len(f.Refused) > 0 {
		rows = append(rows, []string{"  of which the hub refused, for each", audit.FormatEach(f.Refused, f.Clusters)})
	}
	for _, w := range []struct {
		name string
		*windowResult
	}{{"at rest", f.Rest}, {"hub-controller-manager starts anew", f.Restarted}} {
		if w.windowResult != nil {
			rows = append(rows, []string{fmt.Sprintf("%s, %.0f s", w.name, w.Seconds), fmt.Sprintf("hub: %s; "+
				"AWS: %d calls, %d writes; hub-controller-manager: %.3f cores, %d MiB", audit.FormatAll(w.Writes, w.Reads), w.AWSCalls,
				w.AWSWrites, w.Cores["hub-controller-manager"], w.RSS/1024)})
			rows = append(rows, []string{"  clusters checked in equal times", strings.Trim(fmt.Sprint(w.Checks), "[]")})
		}
	}
	if f.Restarted != nil {
		rows = append(rows, []string{"  shortest time between two checks of a cluster",
			fmt.Sprintf("%.1f s, of the interval of %.0f s", f.Gap, f.Interval)})
	}
	if s := f.Silent; s != nil {
		rows = append(rows, []string{"all agents silent for too long at once: until the hub says so",
			fmt.Sprintf("first %.1f s, last %.1f s, last taint %.1f s; for each %s and %s, CPU ms %s", s.First, s.Last, s.Tainted,
				audit.FormatEach(s.Writes, f.Clusters), audit.FormatEach(s.Reads, f.Clusters), kit.FormatCPU(s.CPU))})
	}
	kit.PrintTable(out, fmt.Sprintf("(g) %d clusters accepted by AWS IAM", f.Clusters), []string{"", ""}, rows)
}

// Judge compares the results with the targets.
func (r Joins) Judge(t *kit.Targets) {
	for _, j := range r {
		all := fmt.Sprintf("all %d", j.Clusters)
		t.Add("f", j.How+": clusters that are ready", all, fmt.Sprint(j.Ready), j.Ready == j.Clusters)
		t.None("f", j.How+": conditions lost", len(j.Lost))
		if j.AWSAll > 0 {
			t.Add("f", j.How+": AWS calls for one cluster, the most", "at most 6", fmt.Sprint(j.AWSMost), j.AWSMost <= 6)
		}
	}
}

// Judge compares the result with the targets.
func (f *Fleet) Judge(t *kit.Targets) {
	if f == nil || f.Rest == nil || f.Restarted == nil {
		return
	}
	for _, w := range []struct {
		name string
		*windowResult
	}{{"at rest", f.Rest}, {"after a restart", f.Restarted}} {
		t.None("g", w.name+": AWS writes", w.AWSWrites)
		t.None("g", w.name+": writes of the hub", audit.Sum(w.Writes))
		// By chance, a part can have more than the mean, but hardly more than five times its square root.
		mean := float64(f.Clusters) / intervalParts
		limit := int(math.Ceil(mean + 5*math.Sqrt(mean)))
		got := slices.Max(w.Checks)
		t.Add("g", w.name+fmt.Sprintf(": clusters checked in %.0f s, the most", f.Interval/intervalParts),
			fmt.Sprintf("at most %d", limit), fmt.Sprint(got), got <= limit)
	}
	checked := 0
	for _, n := range f.Rest.Checks {
		checked += n
	}
	least := int(0.8 * float64(f.Clusters) * watchedParts / intervalParts)
	t.Add("g", fmt.Sprintf("at rest: clusters checked in %.0f s", f.Rest.Seconds), fmt.Sprintf("at least %d", least),
		fmt.Sprint(checked), checked >= least)
	t.Add("g", "time between two checks of a cluster, the shortest", fmt.Sprintf("at least %.1f s", 0.9*f.Interval),
		fmt.Sprintf("%.1f s", f.Gap), f.Gap >= 0.9*f.Interval)
	t.None("g", "conditions lost", len(f.Lost))
	if s := f.Silent; s != nil {
		t.Add("g", "silent at once: clusters that have their condition and taint", fmt.Sprintf("all %d", f.Clusters),
			fmt.Sprint(s.Clusters), s.Clusters == f.Clusters)
		// This is the grace period of a lease of a minute, a second time.
		t.AtMost("g", "silent at once: the last taint", " s", 300, s.Tainted)
	}
}
