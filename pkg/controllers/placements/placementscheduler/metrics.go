// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import (
	"time"

	"github.com/clusterhub/clusterhub/pkg/placement/run"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics have the names of Open Cluster Management's placement controller. They have no label for the placement: users choose its name, and create
// as many as they like.
type metrics struct {
	run, bind, cel prometheus.Histogram
	plugin         *prometheus.HistogramVec
}

func newMetrics() *metrics {
	buckets := prometheus.ExponentialBuckets(0.0001, 4, 10) // to 26 seconds
	histogram := func(name, help string) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}
	}
	return &metrics{
		run:    prometheus.NewHistogram(histogram("scheduling_scheduling_duration_seconds", "Time to choose the clusters of a placement.")),
		bind:   prometheus.NewHistogram(histogram("scheduling_bind_duration_seconds", "Time to write the decisions and the status of a placement.")),
		cel:    prometheus.NewHistogram(histogram("scheduling_cel_runtime_duration_seconds", "Time of the CEL expressions of a placement, for all clusters.")),
		plugin: prometheus.NewHistogramVec(histogram("scheduling_plugin_duration_seconds", "Time of a filter or a prioritizer, for all clusters of a placement."), []string{"plugin_type", "plugin_name"}),
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.run, m.bind, m.cel, m.plugin}
}

// took implements placement.Timing.
func (m *metrics) took(part run.Phase, plugin string, took time.Duration) {
	switch part {
	case run.TimeRun:
		m.run.Observe(took.Seconds())
	case run.TimeCEL:
		m.cel.Observe(took.Seconds())
	case run.TimeFilter, run.TimePrioritizer:
		m.plugin.WithLabelValues(string(part), plugin).Observe(took.Seconds())
	}
}
