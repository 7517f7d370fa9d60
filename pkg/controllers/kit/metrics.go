// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Expose adds what a controller measures to the metrics of the process, in place of what the same controller of a manager before it
// has added. Its name begins with clusterhub_, or is that of upstream, and is in docs/metrics.md.
func Expose(c prometheus.Collector) error {
	metrics.Registry.Unregister(c) // what has the same names
	return metrics.Registry.Register(c)
}
