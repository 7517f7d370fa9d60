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

// ManagedCluster is one cluster that the hub manages, or that asks to be managed. Its labels decide which cluster sets
// it is in. Setting or removing a label under cluster.open-cluster-management.io/ or info.open-cluster-management.io/
// needs the permission "create managedclusters/label" on the name "<key>:<value>".
type ManagedCluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is a DNS label of at most 63 characters: it is also the name of
	// the cluster's namespace on the hub.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state: how to reach the cluster, and whether the hub accepts it. Admins write it; the agent
	// writes its first version when it makes the ManagedCluster.
	// +optional
	Spec ManagedClusterSpec `json:"spec"`
	// status is the observed state. The cluster's agent and the hub's controllers write it.
	// +optional
	Status ManagedClusterStatus `json:"status,omitempty"`
}

// ManagedClusterSpec is the desired state of a ManagedCluster.
type ManagedClusterSpec struct {
	// managedClusterClientConfigs lists the addresses of the cluster's API server, and the certificates to trust there:
	// at most 64. The agent or an admin writes it, for clients that connect to the cluster.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	ManagedClusterClientConfigs []ClientConfig `json:"managedClusterClientConfigs,omitempty"`
	// hubAcceptsClient is true when the hub lets the cluster's agent in. The default is false. Changing it needs the
	// permission "update managedclusters/accept" on the cluster's name; changing it to false needs only "update
	// managedclusters/leave".
	// +optional
	HubAcceptsClient bool `json:"hubAcceptsClient"`
	// leaseDurationSeconds is how often the agent renews the cluster's lease, in seconds: 0 or more. The default is 60,
	// and 0 means the default. After five times this duration without a renewal, the hub sets the condition
	// ManagedClusterConditionAvailable to Unknown.
	// +optional
	// +default=60
	// +k8s:validation:minimum=0
	LeaseDurationSeconds int32 `json:"leaseDurationSeconds,omitempty"`
	// taints keep placements that do not tolerate them away from the cluster: at most 128. Admins write them; the hub
	// adds and removes those named cluster.open-cluster-management.io/unavailable and
	// cluster.open-cluster-management.io/unreachable. There is one for each key and effect: server-side apply leaves those
	// of others as they are, and so does a strategic merge patch, which knows taints by the key alone.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +patchMergeKey=key
	// +patchStrategy=merge
	// +k8s:validation:maxItems=128
	Taints []Taint `json:"taints,omitempty" patchStrategy:"merge" patchMergeKey:"key"`
}

// ClientConfig is one address of a cluster's API server.
type ClientConfig struct {
	// url is the https address of the API server, such as https://api.example.com:6443, at most 2048 bytes.
	// +k8s:validation:pattern="^[hH][tT][tT][pP][sS]://.+"
	// +k8s:validation:maxLength=2048
	URL string `json:"url"`
	// caBundle holds the PEM certificates of the authorities that sign the API server's certificate, at most 64 KiB.
	// Without it, a client uses the authorities that its own system trusts.
	// +optional
	// +listType=atomic
	CABundle []byte `json:"caBundle,omitempty"`
}

// TaintEffect is the effect of a taint on placements that do not tolerate it.
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
	// key is the taint's name, 1 to 316 characters: a qualified name, optionally with a DNS subdomain and "/" before it.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=316
	// +k8s:validation:pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
	Key string `json:"key"`
	// value further describes the taint, at most 1024 characters. The default is empty.
	// +optional
	// +k8s:validation:maxLength=1024
	Value string `json:"value,omitempty"`
	// effect says what the taint does to placements that do not tolerate it: NoSelect, PreferNoSelect or NoSelectIfNew.
	// It is required.
	Effect TaintEffect `json:"effect"`
	// timeAdded is when the taint was added, or got its present value or effect. The server writes it. Leave it out, or
	// send it back unchanged for a taint that is there.
	// +optional
	// +nullable
	TimeAdded metav1.Time `json:"timeAdded"`
}

// ManagedClusterStatus is the observed state of a ManagedCluster.
type ManagedClusterStatus struct {
	// conditions say how far the cluster has come: HubAcceptedManagedCluster (written by the hub), ManagedClusterJoined
	// (by the agent), ManagedClusterConditionAvailable (by both) and others. At most 128.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=128
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// capacity is the sum of the resources of the cluster's nodes, at most 512 entries. The agent writes it.
	// +optional
	// +k8s:validation:maxProperties=512
	Capacity ResourceList `json:"capacity,omitempty"`
	// allocatable is the part of capacity that workloads can use, at most 512 entries. The agent writes it.
	// +optional
	// +k8s:validation:maxProperties=512
	Allocatable ResourceList `json:"allocatable,omitempty"`
	// version is the version of the cluster. The agent writes it.
	// +optional
	Version ManagedClusterVersion `json:"version,omitempty"`
	// clusterClaims are facts that the cluster states about itself, such as its region or product: at most 512. The
	// agent writes them.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=512
	ClusterClaims []ManagedClusterClaim `json:"clusterClaims,omitempty"`
	// managedNamespaces are the namespaces that the cluster's sets ask for, at most 1024. The hub writes the entries;
	// the agent writes their conditions.
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

// ManagedClusterVersion is the version of a cluster.
type ManagedClusterVersion struct {
	// kubernetes is the version of the cluster's API server, such as v1.37.1, at most 256 bytes.
	// +optional
	// +k8s:validation:maxLength=256
	Kubernetes string `json:"kubernetes,omitempty"`
}

// ManagedClusterClaim is one fact that a cluster states about itself.
type ManagedClusterClaim struct {
	// name is the name of the claim, 1 to 253 characters.
	// +optional
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name,omitempty"`
	// value is the value of the claim, 1 to 1024 characters.
	// +optional
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=1024
	Value string `json:"value,omitempty"`
}

// ClusterSetManagedNamespaceConfig is a namespace that a set asks its clusters to have, and whether this cluster has it.
type ClusterSetManagedNamespaceConfig struct {
	// name is the name of the namespace on the managed cluster, a DNS label of at most 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	// +k8s:validation:pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	Name string `json:"name"`
	// clusterSet is the name of the set that asks for the namespace.
	// +k8s:validation:minLength=1
	ClusterSet string `json:"clusterSet"`
	// conditions say whether the namespace exists (NamespaceAvailable), at most 128. The agent writes them.
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
