// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterSetBinding lets a namespace use a cluster set. Making one takes the permission
// "create managedclustersets/bind" on the set.
type ManagedClusterSetBinding struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The name is the name of the set.
	metav1.ObjectMeta

	// spec names the set.
	Spec ManagedClusterSetBindingSpec
	// status is the observed state of the binding.
	Status ManagedClusterSetBindingStatus
}

// ManagedClusterSetBindingSpec names the set of a binding.
type ManagedClusterSetBindingSpec struct {
	// clusterSet is the name of the set, and the name of the binding. It cannot be changed.
	ClusterSet string
}

// ManagedClusterSetBindingStatus is the observed state of a binding.
type ManagedClusterSetBindingStatus struct {
	// conditions tell whether the set exists (Bound).
	Conditions []metav1.Condition
}

// ClusterSetBindingBoundType is the condition that is True when the bound set exists.
const ClusterSetBindingBoundType = "Bound"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterSetBindingList is a list of ManagedClusterSetBinding.
type ManagedClusterSetBindingList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the bindings.
	Items []ManagedClusterSetBinding
}
