// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"time"
)

// options are the flags of the command.
type options struct {
	fleet, rounds, lists, writers, watchers, moves, restarts int

	only, binDir, hubBinDir, output, profileDir, resourceVersion string

	externalEtcd, noFsync, status, serversOnly, keep bool
	timeout                                          time.Duration

	joining, accessRequests, accessClusters int
	driftInterval                           time.Duration

	placements, changes, worksPerCluster, agentWorks, agentManifests, agentWatches int
	agentWrites                                                                    float64

	klusterlets, managedClusters int
	edgePolicies                 int
	tokenLife, rest              time.Duration
}

// wants reports whether one of the parts must be measured.
func (o *options) wants(parts string) bool { return strings.ContainsAny(o.only, parts) }

// smallFleet returns the fleet size for the parts that are measured with 10,000 clusters at most: a larger one takes hours, or too much memory.
func (o *options) smallFleet() int { return min(o.fleet, stageSize) }
