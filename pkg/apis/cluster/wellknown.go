// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "strings"

const (
	// ClusterSetLabel puts a cluster into the exclusive set that its value names.
	ClusterSetLabel = "cluster.open-cluster-management.io/clusterset"
	// ReservedLabelPrefixCluster starts the label keys that are meant for the people who run the hub.
	ReservedLabelPrefixCluster = "cluster.open-cluster-management.io/"
	// ReservedLabelPrefixInfo starts the label keys that are meant for what agents say of their own cluster.
	ReservedLabelPrefixInfo = "info.open-cluster-management.io/"

	// DefaultSet is the set of the clusters that name no other.
	DefaultSet = "default"
	// GlobalSet is the set of all clusters.
	GlobalSet = "global"
)

// IsReservedLabel tells whether a label key takes the permission "create managedclusters/label".
func IsReservedLabel(key string) bool {
	return strings.HasPrefix(key, ReservedLabelPrefixCluster) || strings.HasPrefix(key, ReservedLabelPrefixInfo)
}
