// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package openmcp

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status contains the fields that the status of all kinds has.
type Status struct {
	// observedGeneration is the metadata.generation that the status represents. If it is lower than metadata.generation, the latest change has not
	// been handled yet.
	ObservedGeneration int64
	// phase summarizes the status: Ready, Progressing or Terminating for a Cluster, and Pending, Granted or Denied for a request.
	Phase string
	// conditions represent the latest observations of the object, at most 128.
	Conditions []metav1.Condition
}

// ObjectReference references an object in any namespace.
type ObjectReference struct {
	// name is the name of the object.
	Name string
	// namespace is the namespace of the object.
	Namespace string
}

// LocalObjectReference references an object in the namespace of the referencing object, or a cluster-scoped object.
type LocalObjectReference struct {
	// name is the name of the object, at most 253 characters.
	Name string
}
