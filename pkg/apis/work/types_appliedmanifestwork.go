// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AppliedManifestWork is an agent's record, in its managed cluster, of one ManifestWork: it lists the objects that the agent created, and
// is their owner. Its name is <hash of the hub>-<name of the work>. On a hub, it is about the hub's own cluster, if that is managed as
// well.
type AppliedManifestWork struct {
	metav1.TypeMeta
	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// spec says which work it is, and of which agent. The agent writes it.
	Spec AppliedManifestWorkSpec
	// status has the objects. The agent writes it.
	Status AppliedManifestWorkStatus
}

// AppliedManifestWorkSpec says which work of which hub it is.
type AppliedManifestWorkSpec struct {
	// hubHash is a hash of the hub's URL, 1 to 253 characters. It is required.
	HubHash string
	// agentID says whose it is where several agents work in one cluster, at most 253 characters.
	AgentID string
	// manifestWorkName is the name of the work on the hub, 1 to 253 characters. It is required.
	ManifestWorkName string
}

// AppliedManifestWorkStatus has the objects that an agent has made for a work.
type AppliedManifestWorkStatus struct {
	// appliedResources are the objects, at most 2048.
	AppliedResources []AppliedManifestResourceMeta
	// evictionStartTime is since when the work is missing on the hub, or the agent belongs to another hub. The objects are
	// deleted after a grace period from then on.
	EvictionStartTime *metav1.Time
}

// AppliedManifestResourceMeta is an object that an agent has made.
type AppliedManifestResourceMeta struct {
	ResourceIdentifier
	// version is the API version, 1 to 253 characters. It is required.
	Version string
	// uid is the UID of the object, at most 253 characters. Another object of the same name is left alone.
	UID string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AppliedManifestWorkList is a list of AppliedManifestWork.
type AppliedManifestWorkList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the applied works.
	Items []AppliedManifestWork
}
