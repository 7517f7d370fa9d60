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
	// DefaultSetFeature is the name of the feature gate by which there are DefaultSet and GlobalSet.
	DefaultSetFeature = "DefaultClusterSet"
	// GlobalSet is the set of all clusters.
	GlobalSet = "global"

	// MaxClusterClaims is how many ClusterClaims the status of a ManagedCluster has at most. Agents know it, so that they never tell more.
	MaxClusterClaims = 512
)

// AcceptedAtAnnotation has the time (RFC 3339) at which an update made spec.hubAcceptsClient true. Only hub-apiserver writes it. It is not
// set for a cluster that was created accepted: nothing was requested for the cluster before.
const AcceptedAtAnnotation = "registration.clusterhub.dev/accepted-at"

// RecordNamespace is the namespace in which the hub remembers what it has accepted clusters with.
const RecordNamespace = "clusterhub-registration"

// ReservedNames are names that no cluster may have, because what the hub makes for it by its name is there already, for all
// clusters: the ClusterRole of a cluster "work" would be the role of all work agents, the group of a cluster
// "managed-clusters" the one that all of them are in, and the namespace of the last one that of all records.
var ReservedNames = []string{"managed-clusters", "registration", "work", RecordNamespace}

// IsReservedLabel tells whether a label key takes the permission "create managedclusters/label".
func IsReservedLabel(key string) bool {
	return strings.HasPrefix(key, ReservedLabelPrefixCluster) || strings.HasPrefix(key, ReservedLabelPrefixInfo)
}
