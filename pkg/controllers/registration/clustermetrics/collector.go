// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermetrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

var (
	byDriver = prometheus.NewDesc("clusterhub_managed_clusters",
		"ManagedClusters by the driver that handles them, and by whether they are accepted, denied, or wait to be accepted.",
		[]string{"driver", "state"}, nil)
	byCondition = prometheus.NewDesc("clusterhub_managed_clusters_by_condition",
		"ManagedClusters by whether they are accepted, have joined, and are available.", []string{"accepted", "joined", "available"}, nil)
	pendingNumber = prometheus.NewDesc("clusterhub_registration_requests_pending",
		"Registrations that wait for an admin: clusters for their first acceptance, or accepted ones for the approval of a certificate.", []string{"reason"}, nil)
	pendingAge = prometheus.NewDesc("clusterhub_registration_oldest_pending_seconds",
		"How long the oldest registration has waited for an admin, 0 if none waits.", []string{"reason"}, nil)
	certificates = prometheus.NewDesc("clusterhub_managed_cluster_certificate_expiration_seconds",
		"Time until the certificates of accepted clusters expire, as reported by their agents.", nil, nil)
)

// certificateBounds are from expired to a year.
var certificateBounds = []float64{0, 3600, 6 * 3600, 24 * 3600, 2 * 24 * 3600, 7 * 24 * 3600, 30 * 24 * 3600, 90 * 24 * 3600, 365 * 24 * 3600}

// The reasons for which registrations wait.
const (
	forAcceptance  = "acceptance"
	forCertificate = "certificate"
)

type collector struct {
	clock   clock.PassiveClock
	drivers driver.Drivers

	states, conditions *kit.Tally[*clusterv1.ManagedCluster]
	// waiting are the times since when registrations wait, by reason.
	waiting map[string]*kit.Moments
	pending *kit.Tally[*clusterv1.ManagedCluster]
	ends    *kit.Moments

	acceptances *prometheus.CounterVec
	took        *prometheus.HistogramVec
}

var _ prometheus.Collector = &collector{}

func newCollector(drivers driver.Drivers) *collector {
	c := &collector{
		clock: clock.RealClock{}, drivers: drivers, ends: kit.NewMoments(time.Hour),
		waiting: map[string]*kit.Moments{forAcceptance: kit.NewMoments(time.Minute), forCertificate: kit.NewMoments(time.Minute)},
		acceptances: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "clusterhub_acceptances_total",
			Help: "Clusters that were accepted, by a user or by the hub itself."}, []string{"by"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "clusterhub_registration_duration_seconds",
			Help:    "Time from when a cluster was accepted to when it had joined.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 14)}, []string{"driver"}), // to 2 hours
	}
	var states, conditions [][]string
	for _, d := range drivers {
		c.took.WithLabelValues(d.Name())
		for _, state := range []string{accepted, denied, waiting} {
			states = append(states, []string{d.Name(), state})
		}
	}
	for _, accepted := range []string{"true", "false"} {
		for _, joined := range []string{"true", "false"} {
			for _, available := range []string{"true", "false", "unknown"} {
				conditions = append(conditions, []string{accepted, joined, available})
			}
		}
	}
	c.states = kit.NewTally(byDriver, func(m *clusterv1.ManagedCluster) []string { return []string{c.driverOf(m), stateOf(m)} }, states...)
	c.conditions = kit.NewTally(byCondition, conditionsOf, conditions...)
	c.pending = kit.NewTally(pendingNumber, func(m *clusterv1.ManagedCluster) []string {
		if reason, _ := waitsFor(m); reason != "" {
			return []string{reason}
		}
		return nil
	}, []string{forAcceptance}, []string{forCertificate})
	for _, by := range []string{byUser, byHub} {
		c.acceptances.WithLabelValues(by)
	}
	return c
}

// observe records a change of a cluster.
func (c *collector) observe(change kit.Change[*clusterv1.ManagedCluster]) {
	for _, tally := range []*kit.Tally[*clusterv1.ManagedCluster]{c.states, c.conditions, c.pending} {
		tally.Observe(change)
	}
	c.ends.Move(expiryOf(change.Before), expiryOf(change.After))
	for reason, moments := range c.waiting {
		moments.Move(since(change.Before, reason), since(change.After, reason))
	}
	if by := acceptedBy(change); by != "" {
		c.acceptances.WithLabelValues(by).Inc()
	}
	if hasJoined(change) {
		c.took.WithLabelValues(c.driverOf(change.After)).Observe(c.clock.Since(acceptedAt(change.After)).Seconds())
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, part := range []prometheus.Collector{c.states, c.conditions, c.pending, c.acceptances, c.took} {
		part.Describe(to)
	}
	to <- pendingAge
	to <- certificates
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	for _, part := range []prometheus.Collector{c.states, c.conditions, c.pending, c.acceptances, c.took} {
		part.Collect(to)
	}
	now := c.clock.Now()
	for reason, moments := range c.waiting {
		age := 0.0
		if first := moments.First(); !first.IsZero() {
			age = max(0, now.Sub(first).Seconds())
		}
		to <- prometheus.MustNewConstMetric(pendingAge, prometheus.GaugeValue, age, reason)
	}
	to <- c.ends.Histogram(certificates, certificateBounds, func(end time.Time) float64 { return end.Sub(now).Seconds() })
}
