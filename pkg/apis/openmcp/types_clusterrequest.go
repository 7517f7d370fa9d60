// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package openmcp

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterRequest asks for a cluster for a purpose. The scheduler answers with a Cluster that is there already, or with a new
// one. The Cluster stays at least as long as the request.
type ClusterRequest struct {
	metav1.TypeMeta
	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// spec is the request. It cannot be changed.
	Spec ClusterRequestSpec
	// status is the answer.
	Status ClusterRequestStatus
}

// ClusterRequestSpec is the requested cluster. It cannot be changed.
type ClusterRequestSpec struct {
	// purpose is the purpose of the cluster: one that the scheduler's configuration defines.
	Purpose string
	// waitForClusterDeletion is whether a deleted request stays until its cluster is gone, if the deletion of the request deletes the
	// cluster. The default is true for a cluster of tenancy Exclusive, and false otherwise.
	WaitForClusterDeletion *bool
}

// ClusterRequestStatus is the answer to a request.
type ClusterRequestStatus struct {
	// Status has the fields of the status that all kinds have.
	Status
	// cluster is the Cluster that the request is given. Once set, it is neither changed nor removed.
	Cluster *ObjectReference
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterRequestList is a list of ClusterRequest.
type ClusterRequestList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the requests.
	Items []ClusterRequest
}
