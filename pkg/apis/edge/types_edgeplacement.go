// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EdgePlacement records the services that one policy or pattern placed on one node. The hub writes placements, and users read them.
type EdgePlacement struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The name is the name of the policy or pattern, followed by a hash that includes the node. The
	// labels edge.clusterhub.dev/node, and edge.clusterhub.dev/policy or edge.clusterhub.dev/pattern, select placements.
	metav1.ObjectMeta

	// spec defines the services and the node that they are placed on.
	Spec EdgePlacementSpec
	// status represents the observed state of the placement.
	Status EdgePlacementStatus
}

// EdgePlacementSpec defines services and the node that they are placed on. The node and the origin are immutable.
type EdgePlacementSpec struct {
	// node is the name of the EdgeNode, 1 to 63 characters.
	Node string
	// origin is the policy or pattern that the placement belongs to, in the same namespace.
	Origin PlacementOrigin
	// services are the placed services: 1 for a policy, 1 to 32 for a pattern.
	Services []PlacedService
}

// PlacementOrigin identifies a policy or a pattern.
type PlacementOrigin struct {
	// kind is DeploymentPolicy or DeploymentPattern.
	Kind string
	// name is the name of the policy or pattern, 1 to 244 characters.
	Name string
}

// PlacedService is a version of a service in a namespace of a cluster.
type PlacedService struct {
	// name is the name of the service, as in spec.url of the EdgeService, 1 to 253 characters.
	Name string
	// org is the namespace of the EdgeService, 1 to 63 characters.
	Org string
	// version is the placed version of the service, 1 to 63 characters.
	Version string
	// arch is the architecture of the EdgeService, 1 to 63 characters.
	Arch string
	// targetNamespace is the namespace of the cluster that the service is deployed to, 1 to 63 characters.
	TargetNamespace string
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
	ObservedGeneration int64
	// state is Pending, Delivering, Running, Failed or Removing. It is Running only if the cluster reports that.
	State PlacementState
	// reason is a CamelCase word for why the placement is in this state, at most 63 characters.
	Reason string
	// message is a human-readable description of the reason, at most 1024 characters.
	Message string
	// work is the name of the ManifestWork in the namespace of the node, at most 188 characters.
	Work string
	// lastTransitionTime is the last time the state changed.
	LastTransitionTime *metav1.Time
	// attempts are the versions of services that were tried on the node, at most 64. They are recorded if a policy or pattern names several
	// versions of a service, and start over when the policy or pattern, or one of its services, changes.
	Attempts []VersionAttempt
	// attemptsOf is a hash of the policy or pattern and of the services that the attempts refer to, at most 63 characters.
	AttemptsOf string
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
	Org string
	// name is the name of the service, as in spec.url of the EdgeService, 1 to 253 characters.
	Name string
	// version is the version of the service, 1 to 63 characters.
	Version string
	// state is Retrying, Removing, GivenUp or Verified. It is empty for a version that has not been failing for long enough to count, or that
	// has failed while no other version fits.
	State AttemptState
	// failures is the number of times that the version failed within its retry_durations, 0 to 101.
	Failures int32
	// failingSince is the time since when the version has been failing, if it fails. A failure counts after a minute.
	FailingSince *metav1.Time
	// firstFailureTime is the time of the first of these failures.
	FirstFailureTime *metav1.Time
	// lastFailureTime is the time of the last of these failures.
	LastFailureTime *metav1.Time
	// work is the UID of the ManifestWork that failed last, at most 63 characters.
	Work types.UID
	// message is a human-readable description of the last failure, at most 1024 characters.
	Message string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EdgePlacementList is a list of EdgePlacements.
type EdgePlacementList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items is the list of EdgePlacements.
	Items []EdgePlacement
}
