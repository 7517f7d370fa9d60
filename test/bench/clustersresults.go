// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
)

// clustersResults are the results for the clusters of a hub and the peer's.
type clustersResults struct {
	Lists    []listResult   `json:"lists,omitempty"`
	Writes   []writeResult  `json:"writes,omitempty"`
	Memory   []memoryResult `json:"memory,omitempty"`
	Watches  []watchResult  `json:"watches,omitempty"`
	Restarts *restarted     `json:"restarts,omitempty"`
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
	When  string `json:"when"`
	Empty memory `json:"emptyKiB"`
	Full  memory `json:"fullKiB"`
	// PerCluster is the difference, divided by the number of clusters.
	PerCluster map[string]usageEach `json:"perClusterKiB"`
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

func (r *clustersResults) addLists(fleet int, listings []*listing) {
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

func (r *clustersResults) addWrites(name string, both [2]*rates) {
	for i, of := range []string{ours.name, peer.name} {
		result := both[i].result(name, of)
		result.Factor = round(pairedRatio(both[i].perSecond, both[1].perSecond), 2)
		r.Writes = append(r.Writes, result)
	}
}

func (r *clustersResults) addMemory(when string, empty, full memory, clusters int) {
	m := memoryResult{When: when, Empty: empty, Full: full, PerCluster: map[string]usageEach{}}
	for name, u := range full {
		m.PerCluster[name] = u.each(empty[name], clusters, 1)
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

func (r *clustersResults) addWatches(watchers int, all []*watching) {
	for _, w := range all {
		r.Watches = append(r.Watches, watchResult{
			Name: w.name, Watchers: watchers, Writes: w.moved, Events: len(w.events), Lost: w.lost,
			Median: milliseconds(w.events.median()), P99: milliseconds(w.events.p99()),
			Write: milliseconds(w.writes.median()),
		})
	}
}

func (r *clustersResults) addRestarts(t restartTimes) {
	r.Restarts = &restarted{
		Ready: milliseconds(t.ready.median()), Worst: milliseconds(t.ready.quantile(1)),
		Served: milliseconds(t.served.median()), Stop: milliseconds(t.stopped.median()),
		Peer: milliseconds(t.peer.median()),
	}
}
