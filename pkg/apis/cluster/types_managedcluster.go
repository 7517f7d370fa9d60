// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedCluster is one cluster that the hub manages, or that asks to be managed. Its labels decide which
// cluster sets it is in; a label under cluster.open-cluster-management.io/ or info.open-cluster-management.io/
// takes the permission "create managedclusters/label" on the name "<key>:<value>".
type ManagedCluster struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The name is a DNS label: it is also the name of the cluster's
	// namespace on the hub.
	metav1.ObjectMeta

	// spec is how the hub and other clients reach the cluster, and whether the hub accepts it.
	Spec ManagedClusterSpec
	// status is the state that the cluster's agent and the hub's controllers observe.
	Status ManagedClusterStatus
}

// ManagedClusterSpec is how the hub and other clients reach a cluster, and whether the hub accepts it.
type ManagedClusterSpec struct {
	// managedClusterClientConfigs lists the addresses of the cluster's API server, and how to trust them.
	ManagedClusterClientConfigs []ClientConfig
	// hubAcceptsClient says that the hub lets the cluster's agent in. Changing it takes the permission
	// "update managedclusters/accept" on the cluster's name; to make it false, "update managedclusters/leave" is
	// enough.
	HubAcceptsClient bool
	// leaseDurationSeconds is how often the agent renews the cluster's lease, in seconds. The cluster counts as
	// unreachable after five missed renewals. 0 means the default, 60.
	LeaseDurationSeconds int32
	// taints keep placements that do not tolerate them away from the cluster.
	Taints []Taint
}

// ClientConfig is one address of a cluster's API server.
type ClientConfig struct {
	// url is the https address of the API server.
	URL string
	// caBundle holds the PEM certificates that the API server's certificate is checked against. Without it the
	// system's roots are used.
	CABundle []byte
}

// TaintEffect is the effect of a taint on placements that do not tolerate it.
type TaintEffect string

const (
	// TaintEffectNoSelect keeps the cluster out of every placement decision, existing ones included.
	TaintEffectNoSelect TaintEffect = "NoSelect"
	// TaintEffectPreferNoSelect keeps the cluster out as long as others suffice.
	TaintEffectPreferNoSelect TaintEffect = "PreferNoSelect"
	// TaintEffectNoSelectIfNew keeps the cluster out of new decisions, and leaves existing ones.
	TaintEffectNoSelectIfNew TaintEffect = "NoSelectIfNew"
)

// Taint keeps placements that do not tolerate it away from a cluster.
type Taint struct {
	// key is the taint's name, an optional DNS subdomain and "/" followed by a qualified name.
	Key string
	// value further describes the taint.
	Value string
	// effect is the effect of the taint on placements that do not tolerate it: NoSelect, PreferNoSelect or NoSelectIfNew.
	Effect TaintEffect
	// timeAdded is when the taint was added. The server sets it; a client sends it back unchanged or leaves it
	// empty on a taint that is new.
	TimeAdded metav1.Time
}

// ManagedClusterStatus is the state that the cluster's agent and the hub's controllers observe.
type ManagedClusterStatus struct {
	// conditions tell how far the cluster has come: HubAcceptedManagedCluster, ManagedClusterJoined,
	// ManagedClusterConditionAvailable and others.
	Conditions []metav1.Condition
	// capacity is the sum of the resources of the cluster's nodes.
	Capacity ResourceList
	// allocatable is the part of capacity that workloads can use.
	Allocatable ResourceList
	// version is the cluster's Kubernetes version.
	Version ManagedClusterVersion
	// clusterClaims are facts that the cluster states about itself, such as its region or product.
	ClusterClaims []ManagedClusterClaim
	// managedNamespaces are the namespaces that the cluster's sets ask for, and whether the cluster has them.
	ManagedNamespaces []ClusterSetManagedNamespaceConfig
}

// ResourceName is the name of a resource, such as cpu or memory.
type ResourceName string

// ResourceList maps a resource's name to its quantity.
type ResourceList map[ResourceName]resource.Quantity

// ManagedClusterVersion is a cluster's version.
type ManagedClusterVersion struct {
	// kubernetes is the version of the cluster's API server, such as v1.37.1.
	Kubernetes string
}

// ManagedClusterClaim is one fact that a cluster states about itself.
type ManagedClusterClaim struct {
	// name of the claim, 1 to 253 characters.
	Name string
	// value of the claim, 1 to 1024 characters.
	Value string
}

// ClusterSetManagedNamespaceConfig is a namespace that a set asks its clusters to have.
type ClusterSetManagedNamespaceConfig struct {
	// name of the namespace on the managed cluster.
	Name string
	// clusterSet is the set that asks for the namespace.
	ClusterSet string
	// conditions tell whether the namespace exists: NamespaceAvailable.
	Conditions []metav1.Condition
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterList is a list of ManagedCluster.
type ManagedClusterList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the clusters.
	Items []ManagedCluster
}
