// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// joinResults are the results for the ways of joining.
type joinResults []joinResult

// joinResult is the result for clusters that joined at the same time.
type joinResult struct {
	How       string  `json:"how"`
	Clusters  int     `json:"clusters"`
	Ready     int     `json:"ready"`
	PerSecond float64 `json:"joinsPerSecond"`
	// Accepted and the others are seconds from the creation of a cluster.
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

// restResult is the result for a fleet without changes.
type restResult struct {
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

func (j *joining) result() joinResult {
	result := joinResult{
		How: j.how, Clusters: j.clusters, Ready: len(j.ready), PerSecond: round(float64(len(j.ready))/j.took.Seconds(), 1),
		AcceptedMedian: seconds(j.accepted.median()), AcceptedP99: seconds(j.accepted.p99()),
		ReadyMedian: seconds(j.ready.median()), ReadyP99: seconds(j.ready.p99()), Steady: seconds(j.steady),
		Lost: j.lost, Writes: j.requests.writes(), Reads: j.requests.reads(), Refused: j.requests.refused(), CPU: j.cpu.per(j.clusters),
	}
	result.AWSMost, result.AWSAll = j.calls.most()
	return result
}

func (f *resting) result() *restResult {
	result := &restResult{
		Clusters: f.clusters, Interval: seconds(f.interval), Accepting: seconds(f.accepting), Writes: f.acceptRequests.writes(),
		Refused: f.acceptRequests.refused(), CPU: f.acceptCPU.per(f.clusters), Gap: seconds(f.gap), Lost: f.lost,
		Rest: f.rest.result(), Restarted: f.restarted.result(),
	}
	if f.silentCPU != nil {
		result.Silent = &silentResult{
			Clusters: f.silent, First: seconds(f.silentFirst), Last: seconds(f.silentLast), Tainted: seconds(f.tainted),
			Writes: f.silentRequests.writes(), Reads: f.silentRequests.reads(), Refused: f.silentRequests.refused(),
			CPU: f.silentCPU.per(f.clusters),
		}
	}
	return result
}

func (w *window) result() *windowResult {
	if w == nil {
		return nil
	}
	result := &windowResult{Seconds: seconds(w.took), Writes: w.requests.writes(), Reads: w.requests.reads(), AWSCalls: w.calls,
		AWSWrites: w.writes, Checks: w.checks, Cores: map[string]float64{}, RSS: w.rss}
	for name, used := range w.cpu {
		result.Cores[name] = round(used.Seconds()/w.took.Seconds(), 3)
	}
	return result
}

func (r joinResults) print(out io.Writer) {
	var rows [][]string
	for _, j := range r {
		rows = append(rows, []string{
			j.How, fmt.Sprint(j.Clusters), fmt.Sprintf("%.1f", j.PerSecond),
			fmt.Sprintf("%.2f", j.AcceptedMedian), fmt.Sprintf("%.2f", j.AcceptedP99),
			fmt.Sprintf("%.2f", j.ReadyMedian), fmt.Sprintf("%.2f", j.ReadyP99), fmt.Sprintf("%.1f", j.Steady), each(j.CPU),
		})
	}
	table(out, "(f) clusters that join at the same time; seconds from a cluster's creation", []string{"", "clusters", "joins per s",
		"accepted median", "p99", "ready median", "p99", "all steady after s", "CPU ms each"}, rows)
	for _, j := range r {
		fmt.Fprintf(out, "  %s, requests of hub-controller-manager for each: %.1f writes (%s), %.1f reads (%s)\n", j.How,
			float64(sum(j.Writes))/float64(j.Clusters), most(j.Writes, j.Clusters),
			float64(sum(j.Reads))/float64(j.Clusters), most(j.Reads, j.Clusters))
		if len(j.Refused) > 0 {
			fmt.Fprintf(out, "    of which the hub refused, for each: %s\n", most(j.Refused, j.Clusters))
		}
	}
}

func (f *restResult) print(out io.Writer) {
	if f == nil {
		return
	}
	rows := [][]string{{"accepted from the beginning, until all of them have all",
		fmt.Sprintf("%.1f s, %.0f/s; for each %s; CPU ms %s", f.Accepting, float64(f.Clusters)/f.Accepting,
			most(f.Writes, f.Clusters), each(f.CPU))}}
	if len(f.Refused) > 0 {
		rows = append(rows, []string{"  of which the hub refused, for each", most(f.Refused, f.Clusters)})
	}
	for _, w := range []struct {
		name string
		*windowResult
	}{{"at rest", f.Rest}, {"hub-controller-manager starts anew", f.Restarted}} {
		if w.windowResult != nil {
			rows = append(rows, []string{fmt.Sprintf("%s, %.0f s", w.name, w.Seconds), fmt.Sprintf("hub: %s; "+
				"AWS: %d calls, %d writes; hub-controller-manager: %.3f cores, %d MiB", orNothing(w.Writes, w.Reads), w.AWSCalls,
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
				most(s.Writes, f.Clusters), most(s.Reads, f.Clusters), each(s.CPU))})
	}
	table(out, fmt.Sprintf("(g) %d clusters accepted by AWS IAM", f.Clusters), []string{"", ""}, rows)
}

func (r joinResults) judge(t *targets) {
	for _, j := range r {
		all := fmt.Sprintf("all %d", j.Clusters)
		t.reach("f", j.How+": clusters that are ready", all, fmt.Sprint(j.Ready), j.Ready == j.Clusters)
		t.none("f", j.How+": conditions lost", len(j.Lost))
		if j.AWSAll > 0 {
			t.reach("f", j.How+": AWS calls for one cluster, the most", "at most 6", fmt.Sprint(j.AWSMost), j.AWSMost <= 6)
		}
	}
}

func (f *restResult) judge(t *targets) {
	if f == nil || f.Rest == nil || f.Restarted == nil {
		return
	}
	for _, w := range []struct {
		name string
		*windowResult
	}{{"at rest", f.Rest}, {"after a restart", f.Restarted}} {
		t.none("g", w.name+": AWS writes", w.AWSWrites)
		t.none("g", w.name+": writes of the hub", sum(w.Writes))
		// By chance, a part can have more than the mean, but hardly more than five times its square root.
		mean := float64(f.Clusters) / intervalParts
		limit := int(math.Ceil(mean + 5*math.Sqrt(mean)))
		got := slices.Max(w.Checks)
		t.reach("g", w.name+fmt.Sprintf(": clusters checked in %.0f s, the most", f.Interval/intervalParts),
			fmt.Sprintf("at most %d", limit), fmt.Sprint(got), got <= limit)
	}
	checked := 0
	for _, n := range f.Rest.Checks {
		checked += n
	}
	least := int(0.8 * float64(f.Clusters) * watchedParts / intervalParts)
	t.reach("g", fmt.Sprintf("at rest: clusters checked in %.0f s", f.Rest.Seconds), fmt.Sprintf("at least %d", least),
		fmt.Sprint(checked), checked >= least)
	t.reach("g", "time between two checks of a cluster, the shortest", fmt.Sprintf("at least %.1f s", 0.9*f.Interval),
		fmt.Sprintf("%.1f s", f.Gap), f.Gap >= 0.9*f.Interval)
	t.none("g", "conditions lost", len(f.Lost))
	if s := f.Silent; s != nil {
		t.reach("g", "silent at once: clusters that have their condition and taint", fmt.Sprintf("all %d", f.Clusters),
			fmt.Sprint(s.Clusters), s.Clusters == f.Clusters)
		// This is the grace period of a lease of a minute, a second time.
		t.atMost("g", "silent at once: the last taint", " s", 300, s.Tainted)
	}
}
