// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
)

const (
	// ClusterSetLabel is the label of a cluster with the name of its exclusive set.
	ClusterSetLabel = "cluster.open-cluster-management.io/clusterset"
	// ReservedLabelPrefixCluster is the prefix of the keys of labels for admins of the hub.
	ReservedLabelPrefixCluster = "cluster.open-cluster-management.io/"
	// ReservedLabelPrefixInfo is the prefix of the keys of labels with which agents describe their own cluster.
	ReservedLabelPrefixInfo = "info.open-cluster-management.io/"

	// DefaultSet is the name of the set of the clusters that name no other set.
	DefaultSet = "default"
	// DefaultSetFeature is the feature gate that enables DefaultSet and GlobalSet.
	DefaultSetFeature = "DefaultClusterSet"
	// GlobalSet is the name of the set of all clusters.
	GlobalSet = "global"

	// MaxClusterClaims is the maximum number of ClusterClaims in the status of a ManagedCluster. Agents do not report more.
	MaxClusterClaims = 512
)

// AcceptedAtAnnotation is the annotation of a cluster with the time (RFC 3339) at which an update set spec.hubAcceptsClient to true. Only
// hub-apiserver writes it. It is not set for a cluster that was created as accepted, since nothing was requested for the cluster before.
const AcceptedAtAnnotation = "registration.clusterhub.dev/accepted-at"

// RecordNamespace is the namespace with the hub's records of accepted clusters.
const RecordNamespace = "clusterhub-registration"

// ReservedNames are names that no cluster may have, since the objects that the hub creates for the cluster would have the names of objects for all
// clusters: the ClusterRole of a cluster "work" would be the role of all work agents, the group of a cluster "managed-clusters" would be the group of
// all clusters, and the namespace of a cluster with the name RecordNamespace would be that of all records.
var ReservedNames = []string{"managed-clusters", "registration", "work", RecordNamespace}

// IsReservedLabel reports whether setting a label with the key requires the permission "create managedclusters/label".
func IsReservedLabel(key string) bool {
	return strings.HasPrefix(key, ReservedLabelPrefixCluster) || strings.HasPrefix(key, ReservedLabelPrefixInfo)
}

// Condition types of a ManagedCluster.
const (
	// ManagedClusterConditionJoined reports whether the cluster's agent has connected with its own identity on the hub.
	ManagedClusterConditionJoined = "ManagedClusterJoined"
	// ManagedClusterConditionHubAccepted reports whether the hub accepts the cluster.
	ManagedClusterConditionHubAccepted = "HubAcceptedManagedCluster"
	// ManagedClusterConditionAvailable reports whether the cluster's agent and API server are healthy.
	ManagedClusterConditionAvailable = "ManagedClusterConditionAvailable"
)
