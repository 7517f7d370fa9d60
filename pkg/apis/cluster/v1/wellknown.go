// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import "github.com/clusterhub/clusterhub/pkg/apis/cluster"

// Condition types of a ManagedCluster.
const (
	// ManagedClusterConditionJoined is True once the cluster's agent has its own identity on the hub.
	ManagedClusterConditionJoined = cluster.ManagedClusterConditionJoined
	// ManagedClusterConditionHubAccepted tells whether the hub lets the cluster in.
	ManagedClusterConditionHubAccepted = cluster.ManagedClusterConditionHubAccepted
	// ManagedClusterConditionAvailable is True while the cluster's agent and API server are healthy.
	ManagedClusterConditionAvailable = cluster.ManagedClusterConditionAvailable
)

// ClusterSetLabel puts a cluster into the exclusive set that its value names.
const ClusterSetLabel = cluster.ClusterSetLabel
