// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterSetBinding lets a namespace use a cluster set. Creating one needs the permission "create
// managedclustersets/bind" on the name of the set.
type ManagedClusterSetBinding struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is the name of the set.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the set.
	// +optional
	Spec ManagedClusterSetBindingSpec `json:"spec"`
	// status is the observed state. The hub writes it.
	// +optional
	Status ManagedClusterSetBindingStatus `json:"status,omitempty"`
}

// ManagedClusterSetBindingSpec names the set of a binding.
type ManagedClusterSetBindingSpec struct {
	// clusterSet is the name of the set. It has to be the name of the binding, and cannot be changed.
	// +k8s:validation:minLength=1
	ClusterSet string `json:"clusterSet"`
}

// ManagedClusterSetBindingStatus is the observed state of a ManagedClusterSetBinding.
type ManagedClusterSetBindingStatus struct {
	// conditions say whether the set exists (Bound), at most 128. The hub writes them.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterSetBindingBoundType is the condition that is True when the bound set exists.
const ClusterSetBindingBoundType = "Bound"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterSetBindingList is a list of ManagedClusterSetBinding.
type ManagedClusterSetBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the bindings.
	Items []ManagedClusterSetBinding `json:"items"`
}
