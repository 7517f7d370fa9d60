// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	tokensIssued = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "clusterhub_access_tokens_issued_total",
		Help: "Number of tokens that were requested from clusters for AccessRequests, by the name of this provider."}, []string{"provider", "result"})
	tokenDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "clusterhub_access_token_duration_seconds",
		Help:    "Duration of token requests to clusters, by the name of this provider.",
		Buckets: prometheus.ExponentialBuckets(0.01, 2, 12)}, []string{"provider"}) // to 20 seconds
)

func init() { metrics.Registry.MustRegister(tokensIssued, tokenDuration) }

// issued counts a token request.
func issued(provider string, began time.Time, err error) {
	result := "issued"
	if err != nil {
		result = "failed"
	}
	tokensIssued.WithLabelValues(provider, result).Inc()
	tokenDuration.WithLabelValues(provider).Observe(time.Since(began).Seconds())
}
