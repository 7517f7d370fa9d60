// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterSetBinding allows a namespace to use a cluster set. Creating one requires the permission "create managedclustersets/bind" on the name
// of the set.
type ManagedClusterSetBinding struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The name is the name of the set.
	metav1.ObjectMeta

	// spec identifies the set.
	Spec ManagedClusterSetBindingSpec
	// status represents the observed state of the binding.
	Status ManagedClusterSetBindingStatus
}

// ManagedClusterSetBindingSpec identifies the set of a binding.
type ManagedClusterSetBindingSpec struct {
	// clusterSet is the name of the set. It must equal the name of the binding. Required and immutable.
	ClusterSet string
}

// ManagedClusterSetBindingStatus represents the observed state of a ManagedClusterSetBinding.
type ManagedClusterSetBindingStatus struct {
	// conditions represent the latest observations of the binding, at most 128. Bound reports whether the set exists. The hub writes them.
	Conditions []metav1.Condition
}

// ClusterSetBindingBoundType is the condition that reports whether the bound set exists.
const ClusterSetBindingBoundType = "Bound"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterSetBindingList is a list of ManagedClusterSetBindings.
type ManagedClusterSetBindingList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the ManagedClusterSetBindings.
	Items []ManagedClusterSetBinding
}
