// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterSet is a set of ManagedClusters that are selected by their labels. To list its members, run kubectl get clustersetmembers
// --field-selector spec.clusterSet=<name>.
type ManagedClusterSet struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the desired state of the set: its clusters, and the namespaces that they should have. Users write it.
	// +optional
	Spec ManagedClusterSetSpec `json:"spec"`
	// status represents the observed state of the set. The hub writes it.
	// +optional
	Status ManagedClusterSetStatus `json:"status,omitempty"`
}

// ManagedClusterSetSpec defines the desired state of a ManagedClusterSet.
type ManagedClusterSetSpec struct {
	// clusterSelector selects the clusters of the set. It cannot select the same key and value as another exclusive set.
	// +optional
	ClusterSelector ManagedClusterSelector `json:"clusterSelector,omitempty"`
	// managedNamespaces are namespaces that all clusters of the set should have, at most 256. The agent of each cluster creates them there; it never
	// deletes them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +k8s:validation:maxItems=256
	ManagedNamespaces []ManagedNamespaceConfig `json:"managedNamespaces,omitempty"`
}

// ManagedNamespaceConfig is a namespace that all clusters of a set should have.
type ManagedNamespaceConfig struct {
	// name is the name of the namespace, a DNS label of at most 63 characters. Required.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	// +k8s:validation:pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	Name string `json:"name"`
}

// SelectorType is a way in which a set selects its clusters.
// +enum
type SelectorType string

const (
	// ExclusiveClusterSetLabel selects the clusters whose label cluster.open-cluster-management.io/clusterset is the name of the set. An empty type
	// and LegacyClusterSetLabel have the same meaning.
	ExclusiveClusterSetLabel SelectorType = "ExclusiveClusterSetLabel"
	// LegacyClusterSetLabel is the name of ExclusiveClusterSetLabel in v1beta1. The server accepts it, and returns ExclusiveClusterSetLabel.
	LegacyClusterSetLabel SelectorType = "LegacyClusterSetLabel"
	// LabelSelector selects the clusters that match a label selector. Such sets may overlap.
	LabelSelector SelectorType = "LabelSelector"
)

// ManagedClusterSelector selects the clusters of a set.
type ManagedClusterSelector struct {
	// selectorType is ExclusiveClusterSetLabel or LabelSelector. With ExclusiveClusterSetLabel (the default), the set selects the clusters with the
	// label cluster.open-cluster-management.io/clusterset=<name of the set>. With LabelSelector, it selects the clusters that match labelSelector.
	// +optional
	// +default="ExclusiveClusterSetLabel"
	SelectorType SelectorType `json:"selectorType,omitempty"`
	// labelSelector selects clusters by their labels, with at most 128 match labels and 128 match expressions. An empty selector, {}, selects all
	// clusters; if the field is not set, the set is empty. Used only if selectorType is LabelSelector.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// SelectorAnnotation is the annotation with the v1beta1 selector of a set that v1beta2 cannot express, as JSON. The server sets it. A v1beta2 client
// that writes the selector back unchanged preserves the v1beta1 selector; a client that changes the selector replaces it.
const SelectorAnnotation = "clusterhub.dev/v1beta1-cluster-selector"

// ManagedClusterSetStatus represents the observed state of a ManagedClusterSet.
type ManagedClusterSetStatus struct {
	// conditions represent the latest observations of the set, at most 128. ClusterSetEmpty reports whether the set has no clusters; its message has
	// the number of clusters. The hub writes them.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=128
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ManagedClusterSetConditionEmpty reports whether the set has no clusters.
const ManagedClusterSetConditionEmpty = "ClusterSetEmpty"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterSetList is a list of ManagedClusterSets.
type ManagedClusterSetList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the ManagedClusterSets.
	Items []ManagedClusterSet `json:"items"`
}
