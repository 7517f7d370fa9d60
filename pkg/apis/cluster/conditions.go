// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// Condition types of a ManagedCluster.
const (
	// ManagedClusterConditionJoined reports whether the cluster's agent has connected with its own identity on the hub.
	ManagedClusterConditionJoined = "ManagedClusterJoined"
	// ManagedClusterConditionHubAccepted reports whether the hub accepts the cluster.
	ManagedClusterConditionHubAccepted = "HubAcceptedManagedCluster"
	// ManagedClusterConditionAvailable reports whether the cluster's agent and API server are healthy.
	ManagedClusterConditionAvailable = "ManagedClusterConditionAvailable"
)
