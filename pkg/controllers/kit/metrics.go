// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Expose adds what a controller measures to the metrics of the process, in place of what the same controller of a manager before it
// has added. Its name begins with clusterhub_, or is that of upstream, and is in docs/metrics.md.
func Expose(c prometheus.Collector) error {
	metrics.Registry.Unregister(c) // what has the same names
	return metrics.Registry.Register(c)
}

// What has become of a write.
const written, outdated, refused, failed = "written", "outdated", "refused", "failed"

// CountWrite counts a write by its operation, and by what has become of it: written; outdated, as something else was faster; refused by
// the server for good; or failed.
func CountWrite(writes *prometheus.CounterVec, operation string, err error) {
	result := written
	switch {
	case err == nil:
	case IsOutdated(err), IsGone(err), apierrors.IsAlreadyExists(err):
		result = outdated
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		result = refused
	default:
		result = failed
	}
	writes.WithLabelValues(operation, result).Inc()
}
