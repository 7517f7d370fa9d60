// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterSetBinding allows a namespace to use a cluster set. Creating one requires the permission "create managedclustersets/bind" on the name
// of the set.
type ManagedClusterSetBinding struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is the name of the set.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec identifies the set.
	// +optional
	Spec ManagedClusterSetBindingSpec `json:"spec"`
	// status represents the observed state of the binding. The hub writes it.
	// +optional
	Status ManagedClusterSetBindingStatus `json:"status,omitempty"`
}

// ManagedClusterSetBindingSpec identifies the set of a binding.
type ManagedClusterSetBindingSpec struct {
	// clusterSet is the name of the set. It must equal the name of the binding. Required and immutable.
	// +k8s:validation:minLength=1
	ClusterSet string `json:"clusterSet"`
}

// ManagedClusterSetBindingStatus represents the observed state of a ManagedClusterSetBinding.
type ManagedClusterSetBindingStatus struct {
	// conditions represent the latest observations of the binding, at most 128. Bound reports whether the set exists. The hub writes them.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=128
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterSetBindingBoundType is the condition that reports whether the bound set exists.
const ClusterSetBindingBoundType = "Bound"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedClusterSetBindingList is a list of ManagedClusterSetBindings.
type ManagedClusterSetBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the ManagedClusterSetBindings.
	Items []ManagedClusterSetBinding `json:"items"`
}
