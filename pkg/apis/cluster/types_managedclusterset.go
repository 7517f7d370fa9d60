// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterSet is a set of ManagedClusters that are selected by their labels. To list its members, run kubectl get clustersetmembers
// --field-selector spec.clusterSet=<name>.
type ManagedClusterSet struct {
	metav1.TypeMeta
	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// spec defines the desired state of the set: its clusters, and the namespaces that they should have.
	Spec ManagedClusterSetSpec
	// status represents the observed state of the set.
	Status ManagedClusterSetStatus
}

// ManagedClusterSetSpec defines the desired state of a ManagedClusterSet.
type ManagedClusterSetSpec struct {
	// clusterSelector selects the clusters of the set.
	ClusterSelector ManagedClusterSelector
	// managedNamespaces are namespaces that all clusters of the set should have, at most 256.
	ManagedNamespaces []ManagedNamespaceConfig
}

// ManagedNamespaceConfig is a namespace that all clusters of a set should have.
type ManagedNamespaceConfig struct {
	// name is the name of the namespace, a DNS label of at most 63 characters. Required.
	Name string
}

// SelectorType is a way in which a set selects its clusters.
type SelectorType string

const (
	// ExclusiveClusterSetLabel selects the clusters whose label cluster.open-cluster-management.io/clusterset is the name of the set. Its name in
	// v1beta1 is LegacyClusterSetLabel.
	ExclusiveClusterSetLabel SelectorType = "ExclusiveClusterSetLabel"
	// ExclusiveLabel selects the clusters that have one label, which no other set can select.
	ExclusiveLabel SelectorType = "ExclusiveLabel"
	// LabelSelector selects the clusters that match a label selector. Such sets may overlap.
	LabelSelector SelectorType = "LabelSelector"
)

// ManagedClusterSelector selects the clusters of a set.
type ManagedClusterSelector struct {
	// selectorType is the way in which the set selects its clusters.
	SelectorType SelectorType
	// exclusiveLabel is the label of the clusters of the set. No two sets can have the same key and value. Required if selectorType is
	// ExclusiveLabel, and otherwise not used.
	ExclusiveLabel *ManagedClusterLabel
	// labelSelector selects clusters by their labels, with at most 128 match labels and 128 match expressions. An empty selector, {}, selects all
	// clusters; if the field is not set, the set is empty. Used only if selectorType is LabelSelector.
	LabelSelector *metav1.LabelSelector
}

// ManagedClusterLabel is a label of a cluster.
type ManagedClusterLabel struct {
	// key is the key of the label. It must start with cluster.open-cluster-management.io/ or info.open-cluster-management.io/.
	Key string
	// value is the value of the label, 1 to 63 characters.
	Value string
}

// ManagedClusterSetStatus represents the observed state of a ManagedClusterSet.
type ManagedClusterSetStatus struct {
	// conditions represent the latest observations of the set, at most 128. ClusterSetEmpty reports whether the set has no clusters; its message has
	// the number of clusters. The hub writes them.
	Conditions []metav1.Condition
}

// ManagedClusterSetConditionEmpty reports whether the set has no clusters.
const ManagedClusterSetConditionEmpty = "ClusterSetEmpty"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterSetList is a list of ManagedClusterSets.
type ManagedClusterSetList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the ManagedClusterSets.
	Items []ManagedClusterSet
}
