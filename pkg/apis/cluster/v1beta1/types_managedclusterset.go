// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterSet is a set of ManagedClusters, selected by their labels. To list its members: kubectl get
// clustersetmembers --field-selector spec.clusterSet=<name>.
type ManagedClusterSet struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state: which clusters are in the set, and which namespaces they should have. Users write it.
	// +optional
	Spec ManagedClusterSetSpec `json:"spec"`
	// status is the observed state. The hub writes it.
	// +optional
	Status ManagedClusterSetStatus `json:"status,omitempty"`
}

// ManagedClusterSetSpec is the desired state of a ManagedClusterSet.
type ManagedClusterSetSpec struct {
	// clusterSelector selects the clusters of the set. It cannot select the same key and value as another exclusive set.
	// +optional
	ClusterSelector ManagedClusterSelector `json:"clusterSelector,omitempty"`
	// managedNamespaces are namespaces that every cluster of the set should have, at most 256. The agent of each cluster creates them
	// there, and deletes none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +k8s:validation:maxItems=256
	ManagedNamespaces []ManagedNamespaceConfig `json:"managedNamespaces,omitempty"`
}

// ManagedNamespaceConfig is a namespace that every cluster of a set should have.
type ManagedNamespaceConfig struct {
	// name is the name of the namespace, a DNS label of at most 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	// +k8s:validation:pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	Name string `json:"name"`
}

// SelectorType is the way in which a set selects its clusters.
// +enum
type SelectorType string

const (
	// LegacyClusterSetLabel selects the clusters whose label cluster.open-cluster-management.io/clusterset is the
	// name of the set. An empty type and ExclusiveClusterSetLabel mean the same.
	LegacyClusterSetLabel SelectorType = "LegacyClusterSetLabel"
	// ExclusiveClusterSetLabel is the v1beta2 name of LegacyClusterSetLabel; it is accepted and shown as that.
	ExclusiveClusterSetLabel SelectorType = "ExclusiveClusterSetLabel"
	// ExclusiveLabel selects the clusters that have one label, which no other set can claim.
	ExclusiveLabel SelectorType = "ExclusiveLabel"
	// LabelSelector selects the clusters that a label selector matches. Such sets may overlap.
	LabelSelector SelectorType = "LabelSelector"
)

// ManagedClusterSelector selects the clusters of a set.
type ManagedClusterSelector struct {
	// selectorType is the way in which the set selects its clusters. LegacyClusterSetLabel (the default, also written ""
	// or ExclusiveClusterSetLabel): by the label cluster.open-cluster-management.io/clusterset=<name of the set>.
	// ExclusiveLabel: by the label in exclusiveLabel. LabelSelector: by labelSelector.
	// +optional
	// +default="LegacyClusterSetLabel"
	SelectorType SelectorType `json:"selectorType,omitempty"`
	// exclusiveLabel is the label that puts a cluster into the set. No two sets can have the same key and value. Only
	// for selectorType ExclusiveLabel, which needs it.
	// +optional
	ExclusiveLabel *ManagedClusterLabel `json:"exclusiveLabel,omitempty"`
	// labelSelector selects clusters by their labels, with at most 128 match labels and 128 match expressions. {}
	// selects every cluster; without the field, the set is empty. Only for selectorType LabelSelector.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// ManagedClusterLabel is one label of a cluster.
type ManagedClusterLabel struct {
	// key is the key of the label. It begins with cluster.open-cluster-management.io/ or
	// info.open-cluster-management.io/.
	// +k8s:validation:minLength=1
	// +k8s:validation:pattern="^(cluster|info)\\.open-cluster-management\\.io/"
	Key string `json:"key"`
	// value is the value of the label, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	// +k8s:validation:pattern="^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
	Value string `json:"value"`
}

// ManagedClusterSetStatus is the observed state of a ManagedClusterSet.
type ManagedClusterSetStatus struct {
	// conditions say whether the set is empty (ClusterSetEmpty), at most 128. The message has the number of clusters.
	// The hub writes them.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ManagedClusterSetConditionEmpty is True when no cluster is in the set.
const ManagedClusterSetConditionEmpty = "ClusterSetEmpty"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterSetList is a list of ManagedClusterSet.
type ManagedClusterSetList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the sets.
	Items []ManagedClusterSet `json:"items"`
}
