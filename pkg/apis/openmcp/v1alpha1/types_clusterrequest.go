// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterRequest asks for a cluster for a purpose. The scheduler answers with a Cluster that is there already, or with a new
// one. The Cluster stays at least as long as the request.
type ClusterRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked for. It cannot be changed.
	// +optional
	Spec ClusterRequestSpec `json:"spec"`
	// status is the answer.
	// +optional
	Status ClusterRequestStatus `json:"status,omitzero"`
}

// ClusterRequestSpec is what a request asks for. It cannot be changed.
type ClusterRequestSpec struct {
	// purpose is what the cluster is needed for, one of those that the scheduler has a definition for.
	// +k8s:validation:minLength=1
	Purpose string `json:"purpose"`
	// waitForClusterDeletion says whether the request, when it is deleted, stays until its cluster is gone, if its deletion
	// is what deletes the cluster. Without it, this is so for a cluster of tenancy Exclusive.
	// +optional
	WaitForClusterDeletion *bool `json:"waitForClusterDeletion,omitempty"`
}

// ClusterRequestStatus is the answer to a request.
type ClusterRequestStatus struct {
	// Status is what the status of every kind begins with.
	Status `json:",inline"`
	// cluster is the Cluster that the request is given. Once set, it is neither changed nor removed.
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
