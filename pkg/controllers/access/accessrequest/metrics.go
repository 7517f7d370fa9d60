// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

var requestsDescription = prometheus.NewDesc("clusterhub_access_requests",
	"AccessRequests by their phase: Pending, Granted, Denied, or other.", []string{"phase"}, nil)

// metrics are totals over the requests of all users.
type metrics struct {
	*kit.Tally[*v1alpha1.AccessRequest]
	took prometheus.Histogram
}

func newMetrics() *metrics {
	return &metrics{
		Tally: kit.NewTally(requestsDescription, func(a *v1alpha1.AccessRequest) []string { return []string{phaseLabel(a)} },
			[]string{v1alpha1.REQUEST_PENDING}, []string{v1alpha1.REQUEST_GRANTED}, []string{v1alpha1.REQUEST_DENIED}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "clusterhub_access_request_duration_seconds",
			Help:    "Time from the creation of an AccessRequest to when it was first granted.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 12)}), // to half an hour
	}
}

// phaseLabel limits the values that providers may write.
func phaseLabel(a *v1alpha1.AccessRequest) string {
	switch {
	case a.Status.IsPending():
		return v1alpha1.REQUEST_PENDING
	case a.Status.IsGranted():
		return v1alpha1.REQUEST_GRANTED
	case a.Status.IsDenied():
		return v1alpha1.REQUEST_DENIED
	}
	return "other"
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	m.Tally.Describe(to)
	m.took.Describe(to)
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.Tally.Collect(to)
	m.took.Collect(to)
}

func (m *metrics) observe(c kit.Change[*v1alpha1.AccessRequest]) {
	m.Observe(c)
	// A request that is granted again after a change has the phase Pending in between.
	if c.Before != nil && c.After != nil && !c.Before.Status.IsGranted() && c.After.Status.IsGranted() && c.After.Generation == 1 {
		m.took.Observe(time.Since(c.After.CreationTimestamp.Time).Seconds())
	}
}

func expose(ctx context.Context, mgr ctrl.Manager) error {
	m := newMetrics()
	synced, err := kit.Follow(ctx, mgr, &v1alpha1.AccessRequest{}, m.observe)
	if err != nil {
		return err
	}
	return kit.Expose(kit.Once(synced, m))
}
