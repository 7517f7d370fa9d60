// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedCluster is one cluster that the hub manages, or that asks to be managed. Its labels decide which
// cluster sets it is in; a label under cluster.open-cluster-management.io/ or info.open-cluster-management.io/
// takes the permission "create managedclusters/label" on the name "<key>:<value>".
type ManagedCluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is a DNS label: it is also the name of the cluster's
	// namespace on the hub.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is how the hub and other clients reach the cluster, and whether the hub accepts it.
	// +optional
	Spec ManagedClusterSpec `json:"spec"`
	// status is what the cluster's agent and the hub's controllers observe.
	// +optional
	Status ManagedClusterStatus `json:"status,omitempty"`
}

// ManagedClusterSpec is how the hub and other clients reach a cluster, and whether the hub accepts it.
type ManagedClusterSpec struct {
	// managedClusterClientConfigs lists the addresses of the cluster's API server, and how to trust them.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	ManagedClusterClientConfigs []ClientConfig `json:"managedClusterClientConfigs,omitempty"`
	// hubAcceptsClient says that the hub lets the cluster's agent in. Changing it takes the permission
	// "update managedclusters/accept" on the cluster's name; to make it false, "update managedclusters/leave" is
	// enough.
	// +optional
	HubAcceptsClient bool `json:"hubAcceptsClient"`
	// leaseDurationSeconds is how often the agent renews the cluster's lease, in seconds. The cluster counts as
	// unreachable after five missed renewals. 0 means the default, 60.
	// +optional
	// +default=60
	// +k8s:validation:minimum=0
	LeaseDurationSeconds int32 `json:"leaseDurationSeconds,omitempty"`
	// taints keep placements that do not tolerate them away from the cluster.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	Taints []Taint `json:"taints,omitempty"`
}

// ClientConfig is one address of a cluster's API server.
type ClientConfig struct {
	// url is the https address of the API server.
	// +k8s:validation:pattern="^[hH][tT][tT][pP][sS]://.+"
	// +k8s:validation:maxLength=2048
	URL string `json:"url"`
	// caBundle holds the PEM certificates that the API server's certificate is checked against. Without it the
	// system's roots are used.
	// +optional
	// +listType=atomic
	CABundle []byte `json:"caBundle,omitempty"`
}

// TaintEffect is what a taint does to placements that do not tolerate it.
// +enum
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
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=316
	// +k8s:validation:pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
	Key string `json:"key"`
	// value further describes the taint.
	// +optional
	// +k8s:validation:maxLength=1024
	Value string `json:"value,omitempty"`
	// effect is what the taint does to placements that do not tolerate it: NoSelect, PreferNoSelect or
	// NoSelectIfNew.
	Effect TaintEffect `json:"effect"`
	// timeAdded is when the taint was added. The server sets it; a client sends it back unchanged or leaves it
	// empty on a taint that is new.
	// +optional
	// +nullable
	TimeAdded metav1.Time `json:"timeAdded"`
}

// ManagedClusterStatus is what the cluster's agent and the hub's controllers observe.
type ManagedClusterStatus struct {
	// conditions tell how far the cluster has come: HubAcceptedManagedCluster, ManagedClusterJoined,
	// ManagedClusterConditionAvailable and others.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=128
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// capacity is the sum of the resources of the cluster's nodes.
	// +optional
	// +k8s:validation:maxProperties=512
	Capacity ResourceList `json:"capacity,omitempty"`
	// allocatable is what of capacity workloads can use.
	// +optional
	// +k8s:validation:maxProperties=512
	Allocatable ResourceList `json:"allocatable,omitempty"`
	// version is the cluster's Kubernetes version.
	// +optional
	Version ManagedClusterVersion `json:"version,omitempty"`
	// clusterClaims are facts that the cluster states about itself, such as its region or product.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=512
	ClusterClaims []ManagedClusterClaim `json:"clusterClaims,omitempty"`
	// managedNamespaces are the namespaces that the cluster's sets ask for, and whether the cluster has them.
	// +optional
	// +listType=map
	// +listMapKey=clusterSet
	// +listMapKey=name
	// +k8s:validation:maxItems=1024
	ManagedNamespaces []ClusterSetManagedNamespaceConfig `json:"managedNamespaces,omitempty"`
}

// ResourceName is the name of a resource, such as cpu or memory.
type ResourceName string

// ResourceList maps a resource's name to its quantity.
type ResourceList map[ResourceName]resource.Quantity

// ManagedClusterVersion is a cluster's version.
type ManagedClusterVersion struct {
	// kubernetes is the version of the cluster's API server, such as v1.37.1.
	// +optional
	// +k8s:validation:maxLength=256
	Kubernetes string `json:"kubernetes,omitempty"`
}

// ManagedClusterClaim is one fact that a cluster states about itself.
type ManagedClusterClaim struct {
	// name of the claim, 1 to 253 characters.
	// +optional
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name,omitempty"`
	// value of the claim, 1 to 1024 characters.
	// +optional
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=1024
	Value string `json:"value,omitempty"`
}

// ClusterSetManagedNamespaceConfig is a namespace that a set asks its clusters to have.
type ClusterSetManagedNamespaceConfig struct {
	// name of the namespace on the managed cluster.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	// +k8s:validation:pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	Name string `json:"name"`
	// clusterSet is the set that asks for the namespace.
	// +k8s:validation:minLength=1
	ClusterSet string `json:"clusterSet"`
	// conditions tell whether the namespace exists: NamespaceAvailable.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=128
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterList is a list of ManagedCluster.
type ManagedClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the clusters.
	Items []ManagedCluster `json:"items"`
}
