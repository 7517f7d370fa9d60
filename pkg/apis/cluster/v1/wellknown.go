// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import "github.com/clusterhub/clusterhub/pkg/apis/cluster"

// Condition types of a ManagedCluster.
const (
	// ManagedClusterConditionJoined reports whether the cluster's agent has connected with its own identity on the hub.
	ManagedClusterConditionJoined = cluster.ManagedClusterConditionJoined
	// ManagedClusterConditionHubAccepted reports whether the hub accepts the cluster.
	ManagedClusterConditionHubAccepted = cluster.ManagedClusterConditionHubAccepted
	// ManagedClusterConditionAvailable reports whether the cluster's agent and API server are healthy.
	ManagedClusterConditionAvailable = cluster.ManagedClusterConditionAvailable
)

// ClusterSetLabel is the label of a cluster with the name of its exclusive set.
const ClusterSetLabel = cluster.ClusterSetLabel
