// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package derived

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// The label resource has the names of the derived resources that this server knows.
var (
	rebuildSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{Name: "clusterhub_membership_rebuild_duration_seconds",
		Help:    "Time to recompute everything that is derived from clusters and sets.",
		Buckets: metrics.ExponentialBuckets(0.001, 4, 10), StabilityLevel: metrics.ALPHA}, []string{"resource"})
	lagSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{Name: "clusterhub_membership_lag_seconds",
		Help:    "Time from when a change of a cluster or a set arrives from etcd to when the resulting changes of a derived resource are sent to its watches.",
		Buckets: metrics.ExponentialBuckets(0.00005, 4, 10), StabilityLevel: metrics.ALPHA}, []string{"resource"})
)

func init() { legacyregistry.MustRegister(rebuildSeconds, lagSeconds) }
