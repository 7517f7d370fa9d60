// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status is what the status of every kind begins with.
type Status struct {
	// observedGeneration is the metadata.generation that the status is about: what is newer has not been looked at yet.
	// +k8s:validation:minimum=0
	ObservedGeneration int64 `json:"observedGeneration"`
	// phase sums the status up in one word. Clusters are Ready, Progressing or Terminating, requests are Pending,
	// Granted or Denied. Who is denied stays so.
	// +k8s:validation:maxLength=253
	Phase string `json:"phase"`
	// conditions tell what the phase sums up, and what is missing: Ready of a Cluster, Granted of a ClusterRequest, Prepared
	// and AccessReady of an AccessRequest, and others.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=128
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ObjectReference names an object in any namespace.
type ObjectReference struct {
	// name of the object.
	// +k8s:validation:minLength=1
	Name string `json:"name"`
	// namespace of the object.
	// +k8s:validation:minLength=1
	Namespace string `json:"namespace"`
}

// LocalObjectReference names an object whose namespace, if it has one, is that of the referring object.
// +structType=atomic
type LocalObjectReference struct {
	// name of the object.
	// +optional
	Name string `json:"name,omitempty"`
}
