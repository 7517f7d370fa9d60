// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterRequest asks for a cluster for a purpose. The scheduler answers with a Cluster that exists already, or with a
// new one. The Cluster stays at least as long as the request.
type ClusterRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the request. The requester writes it; it cannot be changed.
	// +optional
	Spec ClusterRequestSpec `json:"spec"`
	// status is the answer. The scheduler writes it.
	// +optional
	Status ClusterRequestStatus `json:"status,omitzero"`
}

// ClusterRequestSpec is the requested cluster. It cannot be changed.
type ClusterRequestSpec struct {
	// purpose is the purpose of the cluster: one that the scheduler's configuration defines.
	// +k8s:validation:minLength=1
	Purpose string `json:"purpose"`
	// waitForClusterDeletion is true when a deleted request stays until its Cluster is gone, if the Cluster is deleted
	// with it. The default is true for a Cluster of tenancy Exclusive, and false for one of tenancy Shared.
	// +optional
	WaitForClusterDeletion *bool `json:"waitForClusterDeletion,omitempty"`
}

// ClusterRequestStatus is the answer to a ClusterRequest.
type ClusterRequestStatus struct {
	// Status has the fields of the status that all kinds have.
	Status `json:",inline"`
	// cluster names the Cluster that the request has been given. The scheduler sets it once; then it can be neither
	// changed nor removed.
	// +optional
	Cluster *ObjectReference `json:"cluster,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterRequestList is a list of ClusterRequest.
type ClusterRequestList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the requests.
	Items []ClusterRequest `json:"items"`
}
