// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status has the fields of the status that all kinds have.
type Status struct {
	// observedGeneration is the metadata.generation that the status is about. If it is lower than metadata.generation,
	// the latest change has not been handled yet.
	// +k8s:validation:minimum=0
	ObservedGeneration int64 `json:"observedGeneration"`
	// phase is the status in one word. A Cluster is Ready, Progressing or Terminating; a request is Pending, Granted or
	// Denied. A denied AccessRequest stays denied.
	// +k8s:validation:maxLength=253
	Phase string `json:"phase"`
	// conditions say what is done and what is missing, in detail: Ready of a Cluster, Granted of a ClusterRequest,
	// Prepared and AccessReady of an AccessRequest, and others. At most 128.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=128
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ObjectReference names an object in any namespace.
type ObjectReference struct {
	// name is the name of the object.
	// +k8s:validation:minLength=1
	Name string `json:"name"`
	// namespace is the namespace of the object.
	// +k8s:validation:minLength=1
	Namespace string `json:"namespace"`
}

// LocalObjectReference names an object in the namespace of the object that refers to it, or one without a namespace.
// +structType=atomic
type LocalObjectReference struct {
	// name is the name of the object.
	// +optional
	Name string `json:"name,omitempty"`
}
