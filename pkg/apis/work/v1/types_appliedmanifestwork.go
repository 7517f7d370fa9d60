// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AppliedManifestWork is the agent's record of one ManifestWork in the managed cluster. It lists the objects that the agent created, and is their
// owner. Its name is <hubHash>-<name of the work>. On a hub, AppliedManifestWorks record the works of the hub's own cluster, if that is managed as
// well.
type AppliedManifestWork struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec identifies the work and its agent. The agent writes it.
	// +optional
	Spec AppliedManifestWorkSpec `json:"spec,omitempty"`
	// status represents the objects of the work. The agent writes it.
	// +optional
	Status AppliedManifestWorkStatus `json:"status,omitempty"`
}

// AppliedManifestWorkSpec identifies a ManifestWork, its hub and its agent.
type AppliedManifestWorkSpec struct {
	// hubHash is a hash of the hub's URL, 1 to 253 characters. Required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	HubHash string `json:"hubHash"`
	// agentID identifies the agent if several agents run in one cluster, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	AgentID string `json:"agentID"`
	// manifestWorkName is the name of the ManifestWork on the hub, 1 to 253 characters. Required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	ManifestWorkName string `json:"manifestWorkName"`
}

// AppliedManifestWorkStatus represents the objects that an agent created for a work.
type AppliedManifestWorkStatus struct {
	// appliedResources are the objects, at most 2048.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=2048
	AppliedResources []AppliedManifestResourceMeta `json:"appliedResources,omitempty"`
	// evictionStartTime is the time at which the work was first missing on the hub, or the agent first belonged to another hub. The agent deletes the
	// objects after a grace period.
	// +optional
	EvictionStartTime *metav1.Time `json:"evictionStartTime,omitempty"`
}

// AppliedManifestResourceMeta identifies an object that an agent created.
type AppliedManifestResourceMeta struct {
	ResourceIdentifier `json:",inline"`
	// version is the API version of the object, 1 to 253 characters. Required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Version string `json:"version"`
	// uid is the UID of the object, at most 253 characters. The agent does not delete an object of the same name with another UID.
	// +optional
	// +k8s:validation:maxLength=253
	UID string `json:"uid,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AppliedManifestWorkList is a list of AppliedManifestWorks.
type AppliedManifestWorkList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the AppliedManifestWorks.
	Items []AppliedManifestWork `json:"items"`
}
