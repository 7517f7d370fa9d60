// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package works

import (
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/clusterhub/clusterhub/test/bench/audit"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// AgentResult is the result for one agent that applies works to its cluster.
type AgentResult struct {
	Works     int `json:"works"`
	Manifests int `json:"manifests"`
	// MaxWatches is --max-work-watches.
	MaxWatches int `json:"maxWorkWatches"`
	// WritesPerSecond is --agent-writes-per-second of hub-apiserver.
	WritesPerSecond float64 `json:"agentWritesPerSecond"`
	// Seconds is the time from the first work until all are applied, and Applied the number that are. The others are from the creation of a work.
	Applied       int     `json:"applied"`
	Seconds       float64 `json:"seconds"`
	AppliedMedian float64 `json:"appliedMedianSeconds"`
	AppliedP99    float64 `json:"appliedP99Seconds"`
	// OnHub and OnCluster are the agent's requests, and Refused those that were rejected.
	OnHub     map[string]int     `json:"requestsToHub,omitempty"`
	OnCluster map[string]int     `json:"requestsToCluster,omitempty"`
	Refused   map[string]int     `json:"refused,omitempty"`
	CPU       map[string]float64 `json:"cpuMillisecondsEach,omitempty"`
	// Before and After are resident memory in KiB.
	Before        map[string]int     `json:"beforeKiB,omitempty"`
	After         map[string]int     `json:"afterKiB,omitempty"`
	RestOnHub     map[string]int     `json:"restRequestsToHub,omitempty"`
	RestSeconds   float64            `json:"restSeconds,omitempty"`
	RestOnCluster map[string]int     `json:"restRequestsToCluster,omitempty"`
	RestCores     map[string]float64 `json:"restCores,omitempty"`
	Drifts        int                `json:"drifts"`
	DriftMedian   float64            `json:"driftMedianMilliseconds"`
	DriftLongest  float64            `json:"driftLongestMilliseconds"`
	// DriftOnHub and DriftOnCluster are the agent's requests for all drifts.
	DriftOnHub     map[string]int `json:"driftRequestsToHub,omitempty"`
	DriftOnCluster map[string]int `json:"driftRequestsToCluster,omitempty"`
	Lost           []string       `json:"lostConditions,omitempty"`
}

// aboutWorks returns the requests at rest that are about works and their objects: an agent also renews its lease, and checks the health of its cluster.
func aboutWorks(requests map[string]int) map[string]int {
	left := maps.Clone(requests)
	maps.DeleteFunc(left, func(what string, _ int) bool {
		return !strings.Contains(what, "configmaps") && !strings.Contains(what, "manifestworks")
	})
	return left
}

// Print prints the result, unless it is nil.
func (a *AgentResult) Print(out io.Writer) {
	if a == nil {
		return
	}
	per := func(requests map[string]int, n int) string {
		if len(requests) == 0 {
			return "none"
		}
		return fmt.Sprintf("%.3g: %s", float64(audit.Sum(requests))/float64(n), audit.FormatEach(requests, n))
	}
	mib := func(process string) string {
		return fmt.Sprintf("%d, %d MiB", a.Before[process]/1024, a.After[process]/1024)
	}
	rows := [][]string{
		{"applied", fmt.Sprintf("%d after %.1f s: median %.1f s, p99 %.1f s", a.Applied, a.Seconds, a.AppliedMedian, a.AppliedP99)},
		{"  requests to the cluster for each work", per(a.OnCluster, a.Works)},
		{"  requests to the hub for each work", per(a.OnHub, a.Works)},
		{"  of which were not done, for each work", per(a.Refused, a.Works)},
		{"  CPU ms for each work", kit.FormatCPU(a.CPU)},
		{"memory before and after: hub-agent", mib(procAgent)},
		{"  the cluster's kube-apiserver", mib(kit.ProcClusterFront)},
	}
	if a.RestCores != nil {
		rows = append(rows,
			[]string{fmt.Sprintf("at rest, %.0f s: requests to the cluster", a.RestSeconds), per(a.RestOnCluster, 1)},
			[]string{"  requests to the hub", per(a.RestOnHub, 1)},
			[]string{"  cores", fmt.Sprintf("hub-agent %.3f, the cluster's kube-apiserver %.3f", a.RestCores[procAgent], a.RestCores[kit.ProcClusterFront])})
	}
	if a.Drifts > 0 {
		rows = append(rows,
			[]string{"an object changed or deleted, until it is repaired", fmt.Sprintf("median %.0f ms, longest %.0f ms", a.DriftMedian, a.DriftLongest)},
			[]string{"  requests to the cluster for each", per(a.DriftOnCluster, a.Drifts)},
			[]string{"  requests to the hub for each", per(a.DriftOnHub, a.Drifts)})
	}
	kit.PrintTable(out, fmt.Sprintf("(m) one agent, %d works of %d ConfigMaps, at most %d watches, and %g writes to the hub per second",
		a.Works, a.Manifests, a.MaxWatches, a.WritesPerSecond), []string{"", ""}, rows)
}

// Judge compares the result with the targets.
func (a *AgentResult) Judge(t *kit.Targets) {
	if a == nil {
		return
	}
	t.Add("m", "works applied", fmt.Sprint(a.Works), fmt.Sprint(a.Applied), a.Applied == a.Works)
	if a.RestCores != nil {
		left := aboutWorks(a.RestOnCluster)
		maps.Copy(left, aboutWorks(a.RestOnHub))
		left = audit.WithoutWatches(left)
		t.Add("m", "requests about works at rest, besides watches", "none", fmt.Sprint(audit.Sum(left)), len(left) == 0)
	}
	if a.Drifts > 0 {
		t.AtMost("m", "drift repaired, the longest", " s", 1, a.DriftLongest/1000)
	}
	if len(a.Lost) > 0 {
		t.Add("m", "conditions lost", "none", fmt.Sprint(len(a.Lost)), false)
	}
}
