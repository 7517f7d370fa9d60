// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Expose registers a collector of a controller with the metrics of the process, and replaces that of the same controller of an earlier manager. Its
// names begin with clusterhub_, or are those of upstream, and are in docs/metrics.md.
func Expose(c prometheus.Collector) error {
	metrics.Registry.Unregister(c) // an earlier collector with the same names
	return metrics.Registry.Register(c)
}

// The results of a write.
const written, outdated, refused, failed = "written", "outdated", "refused", "failed"

// CountWrite counts a write by its operation and its result: written; outdated, after a conflict; refused by the server permanently; or failed.
func CountWrite(writes *prometheus.CounterVec, operation string, err error) {
	result := written
	switch {
	case err == nil:
	case IsStale(err), IsGone(err), apierrors.IsAlreadyExists(err):
		result = outdated
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		result = refused
	default:
		result = failed
	}
	writes.WithLabelValues(operation, result).Inc()
}
