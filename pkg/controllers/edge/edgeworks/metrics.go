// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeworks

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/clusterhub/clusterhub/pkg/kit"
)

// writes are totals over the works of all placements.
var writes = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "clusterhub_edge_work_writes_total",
	Help: "Writes of the ManifestWorks of EdgePlacements."}, []string{"operation", "result"})

// wrote counts a write.
func wrote(operation string, err error) error {
	kit.CountWrite(writes, operation, err)
	return err
}
