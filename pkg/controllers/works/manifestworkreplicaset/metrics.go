// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/rollout"
)

const (
	// The states of a set.
	stateRolledOut, stateProgressing = "rolled_out", "progressing"
	// The results of a write.
	written, refused, failed = "written", "refused", "failed"
)

// clusterStates are the label values by which clusters are counted, by state.
var clusterStates = map[rollout.ClusterState]string{
	rollout.Waiting: "waiting", rollout.Writing: "waiting", rollout.Blocked: "blocked", rollout.InProgress: "progressing", rollout.Failed: "failed",
	rollout.TimeOut: "timed_out", rollout.Soaking: "soaking", rollout.Succeeded: "succeeded",
}

var (
	setsDescription = prometheus.NewDesc("clusterhub_replicasets",
		"ManifestWorkReplicaSets by the progress of their rollout.", []string{"state"}, nil)
	clustersDescription = prometheus.NewDesc("clusterhub_replicaset_clusters",
		"Clusters of the placements of ManifestWorkReplicaSets by their state in the rollout; one counts for each placement that has chosen it.", []string{"state"}, nil)
)

// metrics are totals over all sets: users choose the names of sets, and create as many as they like.
type metrics struct {
	writes   *prometheus.CounterVec
	duration prometheus.Histogram

	mu       sync.Mutex
	progress map[types.NamespacedName]progress
}

// progress is the progress of the rollout of a set.
type progress struct {
	rolledOut bool
	clusters  map[string]int
}

var _ prometheus.Collector = &metrics{}

func newMetrics() *metrics {
	return &metrics{
		progress: map[types.NamespacedName]progress{},
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "clusterhub_replicaset_work_writes_total",
			Help: "Writes of works of ManifestWorkReplicaSets."}, []string{"operation", "result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "clusterhub_replicaset_rollout_duration_seconds",
			Help:    "Time from when a ManifestWorkReplicaSet was not rolled out to when it was.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 10)}), // to 3 days
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- setsDescription
	ch <- clustersDescription
	m.writes.Describe(ch)
	m.duration.Describe(ch)
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	sets, clusters := map[string]int{stateRolledOut: 0, stateProgressing: 0}, map[string]int{}
	for _, state := range clusterStates {
		clusters[state] = 0
	}
	m.mu.Lock()
	for _, p := range m.progress {
		if p.rolledOut {
			sets[stateRolledOut]++
		} else {
			sets[stateProgressing]++
		}
		for state, n := range p.clusters {
			clusters[state] += n
		}
	}
	m.mu.Unlock()
	for state, n := range sets {
		ch <- prometheus.MustNewConstMetric(setsDescription, prometheus.GaugeValue, float64(n), state)
	}
	for state, n := range clusters {
		ch <- prometheus.MustNewConstMetric(clustersDescription, prometheus.GaugeValue, float64(n), state)
	}
	m.writes.Collect(ch)
	m.duration.Collect(ch)
}

// saw records the progress of a set.
func (m *metrics) saw(set types.NamespacedName, rolledOut bool, targets []*placementTarget) {
	p := progress{rolledOut: rolledOut, clusters: map[string]int{}}
	for _, t := range targets {
		if t.plan == nil {
			continue
		}
		for state, n := range t.plan.Counts {
			p.clusters[clusterStates[state]] += n
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.progress[set] = p
}

func (m *metrics) forget(set types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.progress, set)
}

// wrote counts a write of a work.
func (m *metrics) wrote(operation string, err error) {
	result := written
	switch {
	case err != nil && isRefusal(err):
		result = refused
	case err != nil:
		result = failed
	}
	m.writes.WithLabelValues(operation, result).Inc()
}
