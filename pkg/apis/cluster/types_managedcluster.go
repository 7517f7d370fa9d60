// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedCluster represents a cluster that the hub manages, or that requests to be managed. Its labels determine the cluster sets that it is in.
// Setting or removing a label under cluster.open-cluster-management.io/ or info.open-cluster-management.io/ requires the permission "create
// managedclusters/label" on the name "<key>:<value>".
type ManagedCluster struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The name is a DNS label of at most 63 characters, since it is also the name of the cluster's
	// namespace on the hub.
	metav1.ObjectMeta

	// spec defines the desired state of the cluster: how to connect to it, and whether the hub accepts it.
	Spec ManagedClusterSpec
	// status represents the observed state of the cluster.
	Status ManagedClusterStatus
}

// ManagedClusterSpec defines the desired state of a ManagedCluster.
type ManagedClusterSpec struct {
	// managedClusterClientConfigs are the addresses of the cluster's API server, and the certificates to trust: at most 64.
	ManagedClusterClientConfigs []ClientConfig
	// hubAcceptsClient defines whether the hub accepts the cluster's agent. The default is false. Changing it requires the permission "update
	// managedclusters/accept" on the name of the cluster; changing it to false requires only "update managedclusters/leave".
	HubAcceptsClient bool
	// leaseDurationSeconds is the interval in seconds at which the agent renews the cluster's lease: 0 or more. The default is 60, and 0 means the
	// default.
	LeaseDurationSeconds int32
	// taints exclude the cluster from placements that do not tolerate them: at most 128.
	Taints []Taint
}

// ClientConfig is an address of a cluster's API server.
type ClientConfig struct {
	// url is the HTTPS URL of the API server, such as https://api.example.com:6443, at most 2048 characters. Required.
	URL string
	// caBundle contains the PEM-encoded certificates of the authorities that sign the API server's certificate, at most 64 KiB. If it is empty,
	// clients use the authorities that their own system trusts.
	CABundle []byte
}

// TaintEffect is the effect of a taint on placements that do not tolerate it.
type TaintEffect string

const (
	// TaintEffectNoSelect excludes the cluster from all placement decisions, including existing ones.
	TaintEffectNoSelect TaintEffect = "NoSelect"
	// TaintEffectPreferNoSelect excludes the cluster as long as other clusters suffice.
	TaintEffectPreferNoSelect TaintEffect = "PreferNoSelect"
	// TaintEffectNoSelectIfNew excludes the cluster from new placement decisions, but not from existing ones.
	TaintEffectNoSelectIfNew TaintEffect = "NoSelectIfNew"
)

// Taint excludes a cluster from placements that do not tolerate it.
type Taint struct {
	// key is the name of the taint, 1 to 316 characters: a qualified name, optionally prefixed by a DNS subdomain and "/". Required.
	Key string
	// value further describes the taint, at most 1024 characters. The default is empty.
	Value string
	// effect is the effect of the taint on placements that do not tolerate it: NoSelect, PreferNoSelect or NoSelectIfNew. Required.
	Effect TaintEffect
	// timeAdded is the time at which the taint was added, or at which its value or effect last changed. The server sets it. Clients must omit it, or
	// send it back unchanged for an existing taint.
	TimeAdded metav1.Time
}

// ManagedClusterStatus represents the observed state of a ManagedCluster.
type ManagedClusterStatus struct {
	// conditions represent the latest observations of the cluster, at most 128. Among them are HubAcceptedManagedCluster (set by the hub),
	// ManagedClusterJoined (set by the agent) and ManagedClusterConditionAvailable (set by both).
	Conditions []metav1.Condition
	// capacity is the sum of the resources of the cluster's nodes, at most 512 entries. The agent writes it.
	Capacity ResourceList
	// allocatable is the part of capacity that is available to workloads, at most 512 entries. The agent writes it.
	Allocatable ResourceList
	// version is the version of the cluster. The agent writes it.
	Version ManagedClusterVersion
	// clusterClaims are facts that the cluster states about itself, such as its region or product: at most 512. The agent writes them.
	ClusterClaims []ManagedClusterClaim
	// managedNamespaces are the namespaces that the sets of the cluster request, at most 1024. The hub writes the entries; the agent writes their
	// conditions.
	ManagedNamespaces []ClusterSetManagedNamespaceConfig
}

// ResourceName is the name of a resource, such as cpu or memory.
type ResourceName string

// ResourceList maps names of resources to quantities.
type ResourceList map[ResourceName]resource.Quantity

// ManagedClusterVersion represents the version of a cluster.
type ManagedClusterVersion struct {
	// kubernetes is the Kubernetes version of the cluster's API server, such as v1.37.1, at most 256 characters.
	Kubernetes string
}

// ManagedClusterClaim is a fact that a cluster states about itself.
type ManagedClusterClaim struct {
	// name is the name of the claim, 1 to 253 characters.
	Name string
	// value is the value of the claim, 1 to 1024 characters.
	Value string
}

// ClusterSetManagedNamespaceConfig represents a namespace that a cluster set requests in its clusters, and its state in one of them.
type ClusterSetManagedNamespaceConfig struct {
	// name is the name of the namespace in the managed cluster, a DNS label of at most 63 characters. Required.
	Name string
	// clusterSet is the name of the set that requests the namespace. Required.
	ClusterSet string
	// conditions represent the latest observations of the namespace, at most 128. NamespaceAvailable reports whether the namespace exists. The agent
	// writes them.
	Conditions []metav1.Condition
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterList is a list of ManagedClusters.
type ManagedClusterList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the ManagedClusters.
	Items []ManagedCluster
}
