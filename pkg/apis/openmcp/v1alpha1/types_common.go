// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status contains the fields that the status of all kinds has.
type Status struct {
	// observedGeneration is the metadata.generation that the status represents. If it is lower than metadata.generation, the latest change has not
	// been handled yet.
	// +k8s:validation:minimum=0
	ObservedGeneration int64 `json:"observedGeneration"`
	// phase summarizes the status: Ready, Progressing or Terminating for a Cluster, and Pending, Granted or Denied for a request. A denied
	// AccessRequest is not granted later. At most 253 characters.
	// +k8s:validation:maxLength=253
	Phase string `json:"phase"`
	// conditions represent the latest observations of the object, at most 128. Among them are Ready of a Cluster, Granted of a ClusterRequest, and
	// Prepared and AccessReady of an AccessRequest.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=128
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ObjectReference references an object in any namespace.
type ObjectReference struct {
	// name is the name of the object. Required.
	// +k8s:validation:minLength=1
	Name string `json:"name"`
	// namespace is the namespace of the object. Required.
	// +k8s:validation:minLength=1
	Namespace string `json:"namespace"`
}

// LocalObjectReference references an object in the namespace of the referencing object, or a cluster-scoped object.
// +structType=atomic
type LocalObjectReference struct {
	// name is the name of the object, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Name string `json:"name,omitempty"`
}
