// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"strings"
	"time"
)

// Options are the flags of the command, each with the name of its flag.
type Options struct {
	Fleet, Rounds, Lists, Writers, Watchers, Moves, Restarts int

	Only, BinDir, HubBinDir, Output, ProfileDir, ResourceVersion string

	ExternalEtcd, NoFsync, Status, ServersOnly, Keep bool
	Timeout                                          time.Duration

	Joining, AccessRequests, AccessClusters int
	DriftInterval                           time.Duration

	Placements, Changes, WorksPerCluster, AgentWorks, AgentManifests, AgentWatches int
	AgentWrites                                                                    float64

	Klusterlets, ManagedClusters int
	EdgePolicies                 int
	TokenLife, Rest              time.Duration
}

// Wants reports whether one of the parts must be measured.
func (o *Options) Wants(parts string) bool { return strings.ContainsAny(o.Only, parts) }

// SmallFleet returns the fleet size for the parts that are measured with 10,000 clusters at most: a larger one takes hours, or too much memory.
func (o *Options) SmallFleet() int { return min(o.Fleet, StageSize) }
