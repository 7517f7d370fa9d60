// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterSet groups ManagedClusters by their labels. To list its members: kubectl get clustersetmembers --field-selector
// spec.clusterSet=<name>.
type ManagedClusterSet struct {
	metav1.TypeMeta
	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// spec says which clusters are in the set.
	Spec ManagedClusterSetSpec
	// status is the observed state of the set.
	Status ManagedClusterSetStatus
}

// ManagedClusterSetSpec says which clusters are in a set.
type ManagedClusterSetSpec struct {
	// clusterSelector selects the set's clusters.
	ClusterSelector ManagedClusterSelector
	// managedNamespaces are namespaces that every cluster of the set should have.
	ManagedNamespaces []ManagedNamespaceConfig
}

// ManagedNamespaceConfig is a namespace that every cluster of a set should have.
type ManagedNamespaceConfig struct {
	// name of the namespace, a DNS label.
	Name string
}

// SelectorType is the way in which a set selects its clusters.
type SelectorType string

const (
	// ExclusiveClusterSetLabel selects the clusters whose label cluster.open-cluster-management.io/clusterset is the
	// name of the set. v1beta1 writes it LegacyClusterSetLabel.
	ExclusiveClusterSetLabel SelectorType = "ExclusiveClusterSetLabel"
	// ExclusiveLabel selects the clusters that have one label, which no other set can claim.
	ExclusiveLabel SelectorType = "ExclusiveLabel"
	// LabelSelector selects the clusters that a label selector matches. Such sets may overlap.
	LabelSelector SelectorType = "LabelSelector"
)

// ManagedClusterSelector selects the clusters of a set.
type ManagedClusterSelector struct {
	// SelectorType is the way in which the set selects its clusters.
	SelectorType SelectorType
	// exclusiveLabel is the label that puts a cluster into the set. No two sets can have the same.
	// Only for selectorType ExclusiveLabel.
	ExclusiveLabel *ManagedClusterLabel
	// labelSelector selects clusters by their labels: an empty one selects all, none selects nothing.
	// Only for selectorType LabelSelector.
	LabelSelector *metav1.LabelSelector
}

// ManagedClusterLabel is one label of a cluster.
type ManagedClusterLabel struct {
	// key of the label; it starts with cluster.open-cluster-management.io/ or info.open-cluster-management.io/.
	Key string
	// value of the label.
	Value string
}

// ManagedClusterSetStatus is the observed state of a set.
type ManagedClusterSetStatus struct {
	// conditions tell whether the set is empty (ClusterSetEmpty); its message names the number of clusters.
	Conditions []metav1.Condition
}

// ManagedClusterSetConditionEmpty is True when no cluster is in the set.
const ManagedClusterSetConditionEmpty = "ClusterSetEmpty"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterSetList is a list of ManagedClusterSet.
type ManagedClusterSetList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the sets.
	Items []ManagedClusterSet
}
