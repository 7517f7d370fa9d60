// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EdgePlacement records the services that one policy or pattern placed on one node. The hub writes placements, and users read them.
type EdgePlacement struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is the name of the policy or pattern, followed by a hash that includes the node. The
	// labels edge.clusterhub.dev/node, and edge.clusterhub.dev/policy or edge.clusterhub.dev/pattern, select placements.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the services and the node that they are placed on.
	Spec EdgePlacementSpec `json:"spec"`
	// status represents the observed state of the placement.
	// +optional
	Status EdgePlacementStatus `json:"status,omitempty"`
}

// EdgePlacementSpec defines services and the node that they are placed on. The node and the origin are immutable.
type EdgePlacementSpec struct {
	// node is the name of the EdgeNode, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Node string `json:"node"`
	// origin is the policy or pattern that the placement belongs to, in the same namespace.
	Origin PlacementOrigin `json:"origin"`
	// services are the placed services: 1 for a policy, 1 to 32 for a pattern.
	// +listType=atomic
	// +k8s:validation:minItems=1
	// +k8s:validation:maxItems=32
	Services []PlacedService `json:"services"`
}

// PlacementOrigin identifies a policy or a pattern.
type PlacementOrigin struct {
	// kind is DeploymentPolicy or DeploymentPattern.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Kind string `json:"kind"`
	// name is the name of the policy or pattern, 1 to 244 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=244
	Name string `json:"name"`
}

// PlacedService is a version of a service in a namespace of a cluster.
type PlacedService struct {
	// name is the name of the service, as in spec.url of the EdgeService, 1 to 253 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name"`
	// org is the namespace of the EdgeService, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Org string `json:"org"`
	// version is the placed version of the service, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Version string `json:"version"`
	// arch is the architecture of the EdgeService, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Arch string `json:"arch"`
	// targetNamespace is the namespace of the cluster that the service is deployed to, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	TargetNamespace string `json:"targetNamespace"`
}

// PlacementState is the state of a placement.
type PlacementState string

const (
	// PlacementPending means that the placement has no work yet.
	PlacementPending PlacementState = "Pending"
	// PlacementDelivering means that the work is not applied, or that some of its objects are not ready.
	PlacementDelivering PlacementState = "Delivering"
	// PlacementRunning means that the cluster reports that everything in the work runs.
	PlacementRunning PlacementState = "Running"
	// PlacementFailed means that the cluster reports that the work cannot be applied or does not run.
	PlacementFailed PlacementState = "Failed"
	// PlacementRemoving means that the work of the placement is being deleted.
	PlacementRemoving PlacementState = "Removing"
)

// EdgePlacementStatus represents the observed state of a placement.
type EdgePlacementStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// state is Pending, Delivering, Running, Failed or Removing. It is Running only if the cluster reports that.
	// +optional
	// +k8s:validation:maxLength=63
	State PlacementState `json:"state,omitempty"`
	// reason is a CamelCase word for why the placement is in this state, at most 63 characters.
	// +optional
	// +k8s:validation:maxLength=63
	Reason string `json:"reason,omitempty"`
	// message is a human-readable description of the reason, at most 1024 characters.
	// +optional
	// +k8s:validation:maxLength=1024
	Message string `json:"message,omitempty"`
	// work is the name of the ManifestWork in the namespace of the node, at most 188 characters.
	// +optional
	// +k8s:validation:maxLength=188
	Work string `json:"work,omitempty"`
	// lastTransitionTime is the last time the state changed.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
	// attempts are the versions of services that were tried on the node, at most 64. They are recorded if a policy or pattern names several
	// versions of a service, and start over when the policy or pattern, or one of its services, changes.
	// +optional
	// +listType=map
	// +listMapKey=org
	// +listMapKey=name
	// +listMapKey=version
	// +k8s:validation:maxItems=64
	Attempts []VersionAttempt `json:"attempts,omitempty"`
	// attemptsOf is a hash of the policy or pattern and of the services that the attempts refer to, at most 63 characters.
	// +optional
	// +k8s:validation:maxLength=63
	AttemptsOf string `json:"attemptsOf,omitempty"`
}

// AttemptState is the state of a version that was tried.
type AttemptState string

const (
	// AttemptRetrying means that the version failed and is retried.
	AttemptRetrying AttemptState = "Retrying"
	// AttemptGivenUp means that the version failed as often as its priority allows. The next version that fits is deployed.
	AttemptGivenUp AttemptState = "GivenUp"
	// AttemptRemoving means that the version of one of several services failed, and that its objects are being removed from the node, to be
	// applied again.
	AttemptRemoving AttemptState = "Removing"
	// AttemptVerified means that the version ran for its verified_durations. It remains deployed, even if it fails later.
	AttemptVerified AttemptState = "Verified"
)

// VersionAttempt is the result of a version of a service that was tried on a node.
type VersionAttempt struct {
	// org is the namespace of the EdgeService, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Org string `json:"org"`
	// name is the name of the service, as in spec.url of the EdgeService, 1 to 253 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name"`
	// version is the version of the service, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Version string `json:"version"`
	// state is Retrying, Removing, GivenUp or Verified. It is empty for a version that has not been failing for long enough to count, or that
	// has failed while no other version fits.
	// +optional
	// +k8s:validation:maxLength=63
	State AttemptState `json:"state,omitempty"`
	// failures is the number of times that the version failed within its retry_durations, 0 to 101.
	// +optional
	// +k8s:validation:minimum=0
	// +k8s:validation:maximum=101
	Failures int32 `json:"failures,omitempty"`
	// failingSince is the time since when the version has been failing, if it fails. A failure counts after a minute.
	// +optional
	FailingSince *metav1.Time `json:"failingSince,omitempty"`
	// firstFailureTime is the time of the first of these failures.
	// +optional
	FirstFailureTime *metav1.Time `json:"firstFailureTime,omitempty"`
	// lastFailureTime is the time of the last of these failures.
	// +optional
	LastFailureTime *metav1.Time `json:"lastFailureTime,omitempty"`
	// work is the UID of the ManifestWork that failed last, at most 63 characters.
	// +optional
	// +k8s:validation:maxLength=63
	Work types.UID `json:"work,omitempty"`
	// message is a human-readable description of the last failure, at most 1024 characters.
	// +optional
	// +k8s:validation:maxLength=1024
	Message string `json:"message,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EdgePlacementList is a list of EdgePlacements.
type EdgePlacementList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items is the list of EdgePlacements.
	Items []EdgePlacement `json:"items"`
}
