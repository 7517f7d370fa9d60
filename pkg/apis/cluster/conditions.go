// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// Condition types of a ManagedCluster.
const (
	// ManagedClusterConditionJoined is True once the cluster's agent has its own identity on the hub.
	ManagedClusterConditionJoined = "ManagedClusterJoined"
	// ManagedClusterConditionHubAccepted tells whether the hub lets the cluster in.
	ManagedClusterConditionHubAccepted = "HubAcceptedManagedCluster"
	// ManagedClusterConditionAvailable is True while the cluster's agent and API server are healthy.
	ManagedClusterConditionAvailable = "ManagedClusterConditionAvailable"
)
