// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package openmcp

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterRequest requests a cluster for a purpose. The scheduler assigns an existing Cluster or a new one. The Cluster exists at least as long as the
// request.
type ClusterRequest struct {
	metav1.TypeMeta
	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// spec defines the requested cluster. It is immutable.
	Spec ClusterRequestSpec
	// status represents the observed state of the request.
	Status ClusterRequestStatus
}

// ClusterRequestSpec defines the requested cluster. It is immutable.
type ClusterRequestSpec struct {
	// purpose is the purpose of the cluster, 1 to 253 characters: one that the configuration of the scheduler defines. Required.
	Purpose string
	// waitForClusterDeletion is true if a deleted request exists until its Cluster is gone, in case the Cluster is deleted with it. The default is
	// true for a Cluster of tenancy Exclusive, and false for one of tenancy Shared.
	WaitForClusterDeletion *bool
}

// ClusterRequestStatus represents the observed state of a ClusterRequest.
type ClusterRequestStatus struct {
	// Status contains the fields that the status of all kinds has.
	Status
	// cluster references the Cluster that is assigned to the request. Once set, it can be neither changed nor removed.
	Cluster *ObjectReference
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterRequestList is a list of ClusterRequests.
type ClusterRequestList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the ClusterRequests.
	Items []ClusterRequest
}
