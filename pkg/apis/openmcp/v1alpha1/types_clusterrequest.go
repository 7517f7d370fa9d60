// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterRequest requests a cluster for a purpose. The scheduler assigns an existing Cluster or a new one. The Cluster exists at least as long as the
// request.
type ClusterRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the requested cluster. The requester writes it. It is immutable.
	// +optional
	Spec ClusterRequestSpec `json:"spec"`
	// status represents the observed state of the request. The scheduler writes it.
	// +optional
	Status ClusterRequestStatus `json:"status,omitzero"`
}

// ClusterRequestSpec defines the requested cluster. It is immutable.
type ClusterRequestSpec struct {
	// purpose is the purpose of the cluster, 1 to 253 characters: one that the configuration of the scheduler defines. Required.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Purpose string `json:"purpose"`
	// waitForClusterDeletion is true if a deleted request exists until its Cluster is gone, in case the Cluster is deleted with it. The default is
	// true for a Cluster of tenancy Exclusive, and false for one of tenancy Shared.
	// +optional
	WaitForClusterDeletion *bool `json:"waitForClusterDeletion,omitempty"`
}

// ClusterRequestStatus represents the observed state of a ClusterRequest.
type ClusterRequestStatus struct {
	// Status contains the fields that the status of all kinds has.
	Status `json:",inline"`
	// cluster references the Cluster that is assigned to the request. The scheduler sets it. Once set, it can be neither changed nor removed.
	// +optional
	Cluster *ObjectReference `json:"cluster,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterRequestList is a list of ClusterRequests.
type ClusterRequestList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the ClusterRequests.
	Items []ClusterRequest `json:"items"`
}
