// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package openmcp

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status has the fields of the status that all kinds have.
type Status struct {
	// observedGeneration is the metadata.generation that the status is about: what is newer has not been looked at yet.
	ObservedGeneration int64
	// phase sums the status up in one word. Clusters are Ready, Progressing or Terminating, requests are Pending,
	// Granted or Denied.
	Phase string
	// conditions tell what the phase sums up.
	Conditions []metav1.Condition
}

// ObjectReference names an object in any namespace.
type ObjectReference struct {
	// name of the object.
	Name string
	// namespace of the object.
	Namespace string
}

// LocalObjectReference names an object in the namespace of the referring object, or a cluster-scoped one.
type LocalObjectReference struct {
	// name of the object.
	Name string
}
