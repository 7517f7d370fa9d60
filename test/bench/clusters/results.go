// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"slices"

	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// Results are the results for the clusters of a hub and the peer's.
type Results struct {
	Lists    []listResult      `json:"lists,omitempty"`
	Writes   []kit.WriteResult `json:"writes,omitempty"`
	Memory   []memoryResult    `json:"memory,omitempty"`
	Watches  []watchResult     `json:"watches,omitempty"`
	Restarts *restarted        `json:"restarts,omitempty"`
	// fleet is the number of clusters.
	fleet int
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

// memoryResult is the memory of the fleet at one time.
type memoryResult struct {
	When  string     `json:"when"`
	Empty kit.Memory `json:"emptyKiB"`
	Full  kit.Memory `json:"fullKiB"`
	// PerCluster is the difference, divided by the number of clusters.
	PerCluster map[string]kit.UsageEach `json:"perClusterKiB"`
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

func (r *Results) addLists(fleet int, listings []*kit.Listing) {
	isPeer := func(l *kit.Listing) bool { return l.Name == listPeer }
	peers := listings[slices.IndexFunc(listings, isPeer)].PerRound
	for _, l := range listings {
		r.Lists = append(r.Lists, listResult{
			Fleet: fleet, Name: l.Name, Count: len(l.Latency),
			Median: kit.Milliseconds(l.Latency.Median()), P99: kit.Milliseconds(l.Latency.P99()), PerRound: l.PerRound,
			Bytes: l.Bytes, Factor: kit.Round(kit.PairedRatio(peers, l.PerRound), 1), CPU: l.CPU.Per(len(l.Latency)),
		})
	}
}

func (r *Results) addWrites(name string, both [2]*kit.Rates) {
	for i, of := range []string{kit.Ours.Name, kit.Peer.Name} {
		result := both[i].Result(name, of)
		result.Factor = kit.Round(kit.PairedRatio(both[i].PerSecond, both[1].PerSecond), 2)
		r.Writes = append(r.Writes, result)
	}
}

func (r *Results) addMemory(when string, empty, full kit.Memory, clusters int) {
	m := memoryResult{When: when, Empty: empty, Full: full, PerCluster: map[string]kit.UsageEach{}}
	for name, u := range full {
		m.PerCluster[name] = u.Each(empty[name], clusters, 1)
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

func (r *Results) addWatches(watchers int, all []*watchWay) {
	for _, w := range all {
		r.Watches = append(r.Watches, watchResult{
			Name: w.name, Watchers: watchers, Writes: w.moved, Events: len(w.events), Lost: w.lost,
			Median: kit.Milliseconds(w.events.Median()), P99: kit.Milliseconds(w.events.P99()),
			Write: kit.Milliseconds(w.writes.Median()),
		})
	}
}

func (r *Results) addRestarts(t restartTimes) {
	r.Restarts = &restarted{
		Ready: kit.Milliseconds(t.ready.Median()), Worst: kit.Milliseconds(t.ready.Quantile(1)),
		Served: kit.Milliseconds(t.served.Median()), Stop: kit.Milliseconds(t.stopped.Median()),
		Peer: kit.Milliseconds(t.peer.Median()),
	}
}
