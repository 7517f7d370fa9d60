// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EdgePlacement records the services that one policy or pattern placed on one node. The hub writes placements; users read them.
type EdgePlacement struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The name is the name of the policy or pattern with a hash that includes the node. The
	// labels edge.clusterhub.dev/node, and edge.clusterhub.dev/policy or edge.clusterhub.dev/pattern, select placements.
	metav1.ObjectMeta

	// spec says what is placed where.
	Spec EdgePlacementSpec
	// status says how far it has come.
	Status EdgePlacementStatus
}

// EdgePlacementSpec says what is placed where. The node and the origin cannot be changed.
type EdgePlacementSpec struct {
	// node is the name of the EdgeNode, 1 to 63 characters.
	Node string
	// origin is the policy or pattern of the namespace that this is of.
	Origin PlacementOrigin
	// services are the placed services: 1 for a policy, 1 to 32 for a pattern.
	Services []PlacedService
}

// PlacementOrigin is a policy or a pattern.
type PlacementOrigin struct {
	// kind is DeploymentPolicy or DeploymentPattern.
	Kind string
	// name of it, 1 to 244 characters.
	Name string
}

// PlacedService is a version of a service in a namespace of a cluster.
type PlacedService struct {
	// name of the service, as spec.url of the EdgeService has it, 1 to 253 characters.
	Name string
	// org is the namespace of the EdgeService, 1 to 63 characters.
	Org string
	// version that is placed, 1 to 63 characters.
	Version string
	// arch of it, 1 to 63 characters.
	Arch string
	// targetNamespace is the namespace of the cluster, 1 to 63 characters.
	TargetNamespace string
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
	ObservedGeneration int64
	// state is Pending, Delivering, Running, Failed or Removing. It is Running only when the cluster says so.
	State PlacementState
	// reason is why, one word, at most 63 characters.
	Reason string
	// message says it in words, at most 1024 characters.
	Message string
	// work is the name of the ManifestWork in the namespace of the node, at most 188 characters.
	Work string
	// lastTransitionTime is when the state changed last.
	LastTransitionTime *metav1.Time
	// attempts are the versions of services that were tried on the node, at most 64, where a policy or pattern names several versions of a
	// service. They start again when the policy or pattern, or one of its services, changes.
	Attempts []VersionAttempt
	// attemptsOf is a hash of the policy or pattern and of the services that the attempts are about, at most 63 characters.
	AttemptsOf string
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
	Org string
	// name of the service, as spec.url of the EdgeService has it, 1 to 253 characters.
	Name string
	// version of the service, 1 to 63 characters.
	Version string
	// state is Retrying, Removing, GivenUp or Verified. It is empty for a version that fails and has not failed for long, or has failed while no
	// other fits.
	State AttemptState
	// failures is how often the version has failed within its retry_durations, 0 to 101.
	Failures int32
	// failingSince is when the version was first seen to fail, while it fails. A failure counts after a minute.
	FailingSince *metav1.Time
	// firstFailureTime is when the first of these failures was seen.
	FirstFailureTime *metav1.Time
	// lastFailureTime is when the last one was seen.
	LastFailureTime *metav1.Time
	// work is the UID of the ManifestWork that failed last, at most 63 characters.
	Work types.UID
	// message says why it failed last, at most 1024 characters.
	Message string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EdgePlacementList is a list of EdgePlacement.
type EdgePlacementList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the placements.
	Items []EdgePlacement
}
