// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EdgePlacement records the services that one policy or pattern placed on one node. The hub writes placements; users read them.
type EdgePlacement struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is the name of the policy or pattern with a hash that includes the node. The
	// labels edge.clusterhub.dev/node, and edge.clusterhub.dev/policy or edge.clusterhub.dev/pattern, select placements.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is placed where.
	Spec EdgePlacementSpec `json:"spec"`
	// status says how far it has come.
	// +optional
	Status EdgePlacementStatus `json:"status,omitempty"`
}

// EdgePlacementSpec says what is placed where. The node and the origin cannot be changed.
type EdgePlacementSpec struct {
	// node is the name of the EdgeNode, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Node string `json:"node"`
	// origin is the policy or pattern of the namespace that this is of.
	Origin PlacementOrigin `json:"origin"`
	// services are the placed services: 1 for a policy, 1 to 32 for a pattern.
	// +listType=atomic
	// +k8s:validation:minItems=1
	// +k8s:validation:maxItems=32
	Services []PlacedService `json:"services"`
}

// PlacementOrigin is a policy or a pattern.
type PlacementOrigin struct {
	// kind is DeploymentPolicy or DeploymentPattern.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Kind string `json:"kind"`
	// name of it, 1 to 244 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=244
	Name string `json:"name"`
}

// PlacedService is a version of a service in a namespace of a cluster.
type PlacedService struct {
	// name of the service, as spec.url of the EdgeService has it, 1 to 253 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name"`
	// org is the namespace of the EdgeService, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Org string `json:"org"`
	// version that is placed, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Version string `json:"version"`
	// arch of it, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Arch string `json:"arch"`
	// targetNamespace is the namespace of the cluster, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	TargetNamespace string `json:"targetNamespace"`
}

// PlacementState says how far a placement has come.
type PlacementState string

const (
	// PlacementPending has no work yet.
	PlacementPending PlacementState = "Pending"
	// PlacementDelivering has a work that is not applied, or one with objects that are not ready.
	PlacementDelivering PlacementState = "Delivering"
	// PlacementRunning has a work of which the cluster says that all runs.
	PlacementRunning PlacementState = "Running"
	// PlacementFailed has a work of which the cluster says that it cannot be applied or does not run.
	PlacementFailed PlacementState = "Failed"
	// PlacementRemoving takes its work away.
	PlacementRemoving PlacementState = "Removing"
)

// EdgePlacementStatus says how far a placement has come.
type EdgePlacementStatus struct {
	// observedGeneration is the metadata.generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// state is Pending, Delivering, Running, Failed or Removing. It is Running only when the cluster says so.
	// +optional
	// +k8s:validation:maxLength=63
	State PlacementState `json:"state,omitempty"`
	// reason is why, one word, at most 63 characters.
	// +optional
	// +k8s:validation:maxLength=63
	Reason string `json:"reason,omitempty"`
	// message says it in words, at most 1024 characters.
	// +optional
	// +k8s:validation:maxLength=1024
	Message string `json:"message,omitempty"`
	// work is the name of the ManifestWork in the namespace of the node, at most 188 characters.
	// +optional
	// +k8s:validation:maxLength=188
	Work string `json:"work,omitempty"`
	// lastTransitionTime is when the state changed last.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
	// attempts are the versions of services that were tried on the node, at most 64, where a policy or pattern names several versions of a
	// service. They start again when the policy or pattern, or one of its services, changes.
	// +optional
	// +listType=map
	// +listMapKey=org
	// +listMapKey=name
	// +listMapKey=version
	// +k8s:validation:maxItems=64
	Attempts []VersionAttempt `json:"attempts,omitempty"`
	// attemptsOf is a hash of the policy or pattern and of the services that the attempts are about, at most 63 characters.
	// +optional
	// +k8s:validation:maxLength=63
	AttemptsOf string `json:"attemptsOf,omitempty"`
}

// AttemptState says what came of a version that was tried.
type AttemptState string

const (
	// AttemptRetrying is of a version that has failed, and is tried again.
	AttemptRetrying AttemptState = "Retrying"
	// AttemptGivenUp is of a version that has failed as often as its priority allows. The next one that fits is deployed.
	AttemptGivenUp AttemptState = "GivenUp"
	// AttemptRemoving is of a version of one of several services that has failed: its objects are removed from the node, to be applied again.
	AttemptRemoving AttemptState = "Removing"
	// AttemptVerified is of a version that has run for its verified_durations. It stays, whatever becomes of it later.
	AttemptVerified AttemptState = "Verified"
)

// VersionAttempt says what came of a version of a service that was tried on a node.
type VersionAttempt struct {
	// org is the namespace of the EdgeService, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Org string `json:"org"`
	// name of the service, as spec.url of the EdgeService has it, 1 to 253 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name"`
	// version of the service, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Version string `json:"version"`
	// state is Retrying, Removing, GivenUp or Verified. It is empty for a version that fails and has not failed for long, or has failed while no
	// other fits.
	// +optional
	// +k8s:validation:maxLength=63
	State AttemptState `json:"state,omitempty"`
	// failures is how often the version has failed within its retry_durations, 0 to 101.
	// +optional
	// +k8s:validation:minimum=0
	// +k8s:validation:maximum=101
	Failures int32 `json:"failures,omitempty"`
	// failingSince is when the version was first seen to fail, while it fails. A failure counts after a minute.
	// +optional
	FailingSince *metav1.Time `json:"failingSince,omitempty"`
	// firstFailureTime is when the first of these failures was seen.
	// +optional
	FirstFailureTime *metav1.Time `json:"firstFailureTime,omitempty"`
	// lastFailureTime is when the last one was seen.
	// +optional
	LastFailureTime *metav1.Time `json:"lastFailureTime,omitempty"`
	// work is the UID of the ManifestWork that failed last, at most 63 characters.
	// +optional
	// +k8s:validation:maxLength=63
	Work types.UID `json:"work,omitempty"`
	// message says why it failed last, at most 1024 characters.
	// +optional
	// +k8s:validation:maxLength=1024
	Message string `json:"message,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EdgePlacementList is a list of EdgePlacement.
type EdgePlacementList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the placements.
	Items []EdgePlacement `json:"items"`
}
