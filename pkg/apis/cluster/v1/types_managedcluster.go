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

// ManagedCluster represents a cluster that the hub manages, or that requests to be managed. Its labels determine the cluster sets that it is in.
// Setting or removing a label under cluster.open-cluster-management.io/ or info.open-cluster-management.io/ requires the permission "create
// managedclusters/label" on the name "<key>:<value>".
type ManagedCluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is a DNS label of at most 63 characters, since it is also the name of the cluster's
	// namespace on the hub.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the desired state of the cluster: how to connect to it, and whether the hub accepts it. Admins write it; the agent sets the
	// initial values when it creates the ManagedCluster.
	// +optional
	Spec ManagedClusterSpec `json:"spec"`
	// status represents the observed state of the cluster. The cluster's agent and the hub's controllers write it.
	// +optional
	Status ManagedClusterStatus `json:"status,omitempty"`
}

// ManagedClusterSpec defines the desired state of a ManagedCluster.
type ManagedClusterSpec struct {
	// managedClusterClientConfigs are the addresses of the cluster's API server, and the certificates to trust: at most 64. They are for clients that
	// connect to the cluster. The agent or an admin writes them.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	ManagedClusterClientConfigs []ClientConfig `json:"managedClusterClientConfigs,omitempty"`
	// hubAcceptsClient defines whether the hub accepts the cluster's agent. The default is false. Changing it requires the permission "update
	// managedclusters/accept" on the name of the cluster; changing it to false requires only "update managedclusters/leave".
	// +optional
	HubAcceptsClient bool `json:"hubAcceptsClient"`
	// leaseDurationSeconds is the interval in seconds at which the agent renews the cluster's lease: 0 or more. The default is 60, and 0 means the
	// default. If the lease is not renewed for five times this duration, the hub sets the condition ManagedClusterConditionAvailable to Unknown.
	// +optional
	// +default=60
	// +k8s:validation:minimum=0
	LeaseDurationSeconds int32 `json:"leaseDurationSeconds,omitempty"`
	// taints exclude the cluster from placements that do not tolerate them: at most 128. Admins write them; the hub adds and removes those with the
	// keys cluster.open-cluster-management.io/unavailable and cluster.open-cluster-management.io/unreachable. Each combination of key and effect must
	// be unique. Server-side apply preserves the taints of other managers. A strategic merge patch identifies taints by their key alone, and
	// preserves those with other keys.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +k8s:customUnique
	// +patchMergeKey=key
	// +patchStrategy=merge
	// +k8s:validation:maxItems=128
	Taints []Taint `json:"taints,omitempty" patchStrategy:"merge" patchMergeKey:"key"`
}

// ClientConfig is an address of a cluster's API server.
type ClientConfig struct {
	// url is the HTTPS URL of the API server, such as https://api.example.com:6443, at most 2048 characters. Required.
	// +k8s:validation:pattern="^[hH][tT][tT][pP][sS]://.+"
	// +k8s:validation:maxLength=2048
	URL string `json:"url"`
	// caBundle contains the PEM-encoded certificates of the authorities that sign the API server's certificate, at most 64 KiB. If it is empty,
	// clients use the authorities that their own system trusts.
	// +optional
	// +listType=atomic
	CABundle []byte `json:"caBundle,omitempty"`
}

// TaintEffect is the effect of a taint on placements that do not tolerate it.
// +enum
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
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=316
	// +k8s:validation:pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
	Key string `json:"key"`
	// value further describes the taint, at most 1024 characters. The default is empty.
	// +optional
	// +k8s:validation:maxLength=1024
	Value string `json:"value,omitempty"`
	// effect is the effect of the taint on placements that do not tolerate it: NoSelect, PreferNoSelect or NoSelectIfNew. Required.
	Effect TaintEffect `json:"effect"`
	// timeAdded is the time at which the taint was added, or at which its value or effect last changed. The server sets it. Clients must omit it, or
	// send it back unchanged for an existing taint.
	// +optional
	// +nullable
	TimeAdded metav1.Time `json:"timeAdded"`
}

// ManagedClusterStatus represents the observed state of a ManagedCluster.
type ManagedClusterStatus struct {
	// conditions represent the latest observations of the cluster, at most 128. Among them are HubAcceptedManagedCluster (set by the hub),
	// ManagedClusterJoined (set by the agent) and ManagedClusterConditionAvailable (set by both).
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=128
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// capacity is the sum of the resources of the cluster's nodes, at most 512 entries. The agent writes it.
	// +optional
	// +k8s:validation:maxProperties=512
	Capacity ResourceList `json:"capacity,omitempty"`
	// allocatable is the part of capacity that is available to workloads, at most 512 entries. The agent writes it.
	// +optional
	// +k8s:validation:maxProperties=512
	Allocatable ResourceList `json:"allocatable,omitempty"`
	// version is the version of the cluster. The agent writes it.
	// +optional
	Version ManagedClusterVersion `json:"version,omitempty"`
	// clusterClaims are facts that the cluster states about itself, such as its region or product: at most 512. The agent writes them.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=512
	ClusterClaims []ManagedClusterClaim `json:"clusterClaims,omitempty"`
	// managedNamespaces are the namespaces that the sets of the cluster request, at most 1024. The hub writes the entries; the agent writes their
	// conditions.
	// +optional
	// +listType=map
	// +listMapKey=clusterSet
	// +listMapKey=name
	// +k8s:validation:maxItems=1024
	ManagedNamespaces []ClusterSetManagedNamespaceConfig `json:"managedNamespaces,omitempty"`
}

// ResourceName is the name of a resource, such as cpu or memory.
type ResourceName string

// ResourceList maps names of resources to quantities.
type ResourceList map[ResourceName]resource.Quantity

// ManagedClusterVersion represents the version of a cluster.
type ManagedClusterVersion struct {
	// kubernetes is the Kubernetes version of the cluster's API server, such as v1.37.1, at most 256 characters.
	// +optional
	// +k8s:validation:maxLength=256
	Kubernetes string `json:"kubernetes,omitempty"`
}

// ManagedClusterClaim is a fact that a cluster states about itself.
type ManagedClusterClaim struct {
	// name is the name of the claim, 1 to 253 characters. Required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name,omitempty"`
	// value is the value of the claim, 1 to 1024 characters. Required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=1024
	Value string `json:"value,omitempty"`
}

// ClusterSetManagedNamespaceConfig represents a namespace that a cluster set requests in its clusters, and its state in one of them.
type ClusterSetManagedNamespaceConfig struct {
	// name is the name of the namespace in the managed cluster, a DNS label of at most 63 characters. Required.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	// +k8s:validation:pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	Name string `json:"name"`
	// clusterSet is the name of the set that requests the namespace. Required.
	// +k8s:validation:minLength=1
	ClusterSet string `json:"clusterSet"`
	// conditions represent the latest observations of the namespace, at most 128. NamespaceAvailable reports whether the namespace exists. The agent
	// writes them.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=128
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterList is a list of ManagedClusters.
type ManagedClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the ManagedClusters.
	Items []ManagedCluster `json:"items"`
}
