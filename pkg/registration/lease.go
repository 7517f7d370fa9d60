// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import "time"

const (
	// DefaultLeaseSeconds is the lease duration of a ManagedCluster that does not set one.
	DefaultLeaseSeconds = 60
	// missedRenewals is the number of renewals that an agent may miss before the hub considers it lost, as in Open Cluster Management.
	missedRenewals = 5
)

// LeaseDuration returns the interval at which an agent renews its Lease, for the leaseDurationSeconds of its ManagedCluster.
func LeaseDuration(seconds int32) time.Duration {
	if seconds <= 0 {
		seconds = DefaultLeaseSeconds
	}
	return time.Duration(seconds) * time.Second
}

// LeaseGracePeriod returns how old a Lease with the duration may be before the hub considers the agent lost.
func LeaseGracePeriod(duration time.Duration) time.Duration { return missedRenewals * duration }
