// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteravailability

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var leaseAge = prometheus.NewDesc("clusterhub_managed_cluster_lease_age_seconds",
	"Time since the agents of clusters were last seen alive, by the clock of this process, which counts all as seen when it becomes the leader.", nil, nil)

// ageBounds distinguish agents that are late from those that are away: a Lease is renewed once a minute, and five renewals may be missed.
var ageBounds = []float64{30, 60, 90, 120, 180, 300, 600, 1800, 3600, 6 * 3600, 24 * 3600}

var _ prometheus.Collector = &beats{}

// Describe implements prometheus.Collector.
func (b *beats) Describe(to chan<- *prometheus.Desc) { to <- leaseAge }

// Collect implements prometheus.Collector.
func (b *beats) Collect(to chan<- prometheus.Metric) {
	now := b.clock.Now()
	to <- b.seen.Histogram(leaseAge, ageBounds, func(at time.Time) float64 { return max(0, now.Sub(at).Seconds()) })
}

// setAt records the last sign of life of an agent.
func (b *beats) setAt(s *beat, at time.Time) {
	b.seen.Move(s.at, at)
	s.at = at
}
