// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report is the result of all measurements. It is written as JSON. Times are in milliseconds, memory in KiB.
type report struct {
	Begun       time.Time          `json:"begun"`
	Conditions  conditions         `json:"conditions"`
	Lists       []listResult       `json:"lists,omitempty"`
	Writes      []writeResult      `json:"writes,omitempty"`
	Memory      []memoryResult     `json:"memory,omitempty"`
	Watches     []watchResult      `json:"watches,omitempty"`
	Restarts    *restarted         `json:"restarts,omitempty"`
	View        *viewResult        `json:"view,omitempty"`
	Joins       []joinResult       `json:"joins,omitempty"`
	Rest        *restResult        `json:"fleetAtRest,omitempty"`
	Grants      []grantResult      `json:"grants,omitempty"`
	Tokens      []tokenResult      `json:"tokens,omitempty"`
	Placing     []*placingResult   `json:"placing,omitempty"`
	Works       *worksResult       `json:"works,omitempty"`
	WorkAgent   *workAgentResult   `json:"workAgent,omitempty"`
	Klusterlets *klusterletsResult `json:"klusterlets,omitempty"`
	Edge        *edgeResult        `json:"edge,omitempty"`
	// Failed is why not everything was measured.
	Failed  string   `json:"failed,omitempty"`
	Targets []target `json:"targets"`
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

type listResult struct {
	Fleet    int                `json:"fleet"`
	Name     string             `json:"name"`
	Count    int                `json:"count"`
	Median   float64            `json:"medianMilliseconds"`
	P99      float64            `json:"p99Milliseconds"`
	PerRound []float64          `json:"mediansOfRoundsMilliseconds"`
	Bytes    int                `json:"bytes"`
	Factor   float64            `json:"timesFasterThanPeer"`
	CPU      map[string]float64 `json:"cpuMillisecondsEach"`
}

type writeResult struct {
	Name      string             `json:"name"`
	Of        string             `json:"of"`
	Count     int                `json:"count"`
	PerSecond float64            `json:"perSecondMedianOfRounds"`
	PerRound  []float64          `json:"perSecondOfRounds"`
	Median    float64            `json:"medianMilliseconds"`
	P99       float64            `json:"p99Milliseconds"`
	CPU       map[string]float64 `json:"cpuMillisecondsEach"`
	CPUTotal  float64            `json:"cpuMillisecondsEachOfAll"`
	// Factor is the ratio of the rate to the peer's, by rounds.
	Factor float64 `json:"timesFasterThanPeer"`
}

// memoryResult is the memory of the fleet at one time.
type memoryResult struct {
	When  string `json:"when"`
	Empty memory `json:"emptyKiB"`
	Full  memory `json:"fullKiB"`
	// PerCluster is the difference, divided by the number of clusters.
	PerCluster map[string]perCluster `json:"perClusterKiB"`
}

type perCluster struct {
	RSS  float64 `json:"rss"`
	Anon float64 `json:"anonymous"`
	Heap float64 `json:"liveHeap,omitempty"`
}

type watchResult struct {
	Name     string  `json:"name"`
	Watchers int     `json:"watchers"`
	Writes   int     `json:"writes"`
	Events   int     `json:"events"`
	Lost     int     `json:"lost"`
	Median   float64 `json:"medianMilliseconds"`
	P99      float64 `json:"p99Milliseconds"`
	Write    float64 `json:"writeMedianMilliseconds"`
}

type restarted struct {
	Ready  float64 `json:"readyMilliseconds"`
	Served float64 `json:"servedMilliseconds"`
	Stop   float64 `json:"stopMilliseconds"`
	Peer   float64 `json:"peerServedMilliseconds"`
	Worst  float64 `json:"worstReadyMilliseconds"`
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

func (r *report) addLists(fleet int, listings []*listing) {
	isPeer := func(l *listing) bool { return l.name == listPeer }
	peers := listings[slices.IndexFunc(listings, isPeer)].perRound
	for _, l := range listings {
		r.Lists = append(r.Lists, listResult{
			Fleet: fleet, Name: l.name, Count: len(l.latency),
			Median: milliseconds(l.latency.median()), P99: milliseconds(l.latency.p99()), PerRound: l.perRound,
			Bytes: l.bytes, Factor: round(pairedRatio(peers, l.perRound), 1), CPU: l.cpu.per(len(l.latency)),
		})
	}
}

func (r *report) addWrites(name string, both [2]*rates) {
	for i, of := range []string{ours.name, peer.name} {
		w := both[i]
		r.Writes = append(r.Writes, writeResult{
			Name: name, Of: of, Count: w.count,
			PerSecond: round(median(w.perSecond), 0), PerRound: roundAll(w.perSecond),
			Median: milliseconds(w.latency.median()), P99: milliseconds(w.latency.p99()),
			Factor: round(pairedRatio(w.perSecond, both[1].perSecond), 2),
			CPU:    w.cpu.per(w.count), CPUTotal: round(milliseconds(w.cpu.total())/float64(w.count), 3),
		})
	}
}

func roundAll(values []float64) []float64 {
	rounded := make([]float64, len(values))
	for i, v := range values {
		rounded[i] = round(v, 0)
	}
	return rounded
}

func (r *report) addMemory(when string, empty, full memory, clusters int) {
	m := memoryResult{When: when, Empty: empty, Full: full, PerCluster: map[string]perCluster{}}
	each := func(after, before int) float64 { return round(float64(after-before)/float64(clusters), 1) }
	for name, u := range full {
		before := empty[name]
		m.PerCluster[name] = perCluster{each(u.RSS, before.RSS), each(u.Anon, before.Anon), each(u.Heap, before.Heap)}
	}
	r.Memory = append(r.Memory, m)
}

// rss returns the resident memory per cluster of several processes.
func (m *memoryResult) rss(names ...string) float64 {
	sum := 0.0
	for _, name := range names {
		sum += m.PerCluster[name].RSS
	}
	return sum
}

func (r *report) addWatches(watchers int, all []*watching) {
	for _, w := range all {
		r.Watches = append(r.Watches, watchResult{
			Name: w.name, Watchers: watchers, Writes: w.moved, Events: len(w.events), Lost: w.lost,
			Median: milliseconds(w.events.median()), P99: milliseconds(w.events.p99()),
			Write: milliseconds(w.writes.median()),
		})
	}
}

func (r *report) addRestarts(t restartTimes) {
	r.Restarts = &restarted{
		Ready: milliseconds(t.ready.median()), Worst: milliseconds(t.ready.quantile(1)),
		Served: milliseconds(t.served.median()), Stop: milliseconds(t.stopped.median()),
		Peer: milliseconds(t.peer.median()),
	}
}

// each returns the cost of one request for each process, the highest first.
func each(cpu map[string]float64) string {
	names := slices.SortedFunc(maps.Keys(cpu), func(a, b string) int {
		if cpu[a] == cpu[b] {
			return strings.Compare(a, b)
		}
		if cpu[a] > cpu[b] {
			return -1
		}
		return 1
	})
	parts := make([]string, 0, len(names))
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s %.2f", name, cpu[name]))
	}
	return strings.Join(parts, ", ")
}
