// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AppliedManifestWork is an agent's record, in its managed cluster, of one ManifestWork: it lists the objects that the agent created, and
// is their owner. Its name is <hash of the hub>-<name of the work>. On a hub, it is about the hub's own cluster, if that is managed as
// well.
type AppliedManifestWork struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which work it is, and of which agent. The agent writes it.
	// +optional
	Spec AppliedManifestWorkSpec `json:"spec,omitempty"`
	// status has the objects. The agent writes it.
	// +optional
	Status AppliedManifestWorkStatus `json:"status,omitempty"`
}

// AppliedManifestWorkSpec says which work of which hub it is.
type AppliedManifestWorkSpec struct {
	// hubHash is a hash of the hub's URL, 1 to 253 characters. It is required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	HubHash string `json:"hubHash"`
	// agentID says whose it is where several agents work in one cluster, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	AgentID string `json:"agentID"`
	// manifestWorkName is the name of the work on the hub, 1 to 253 characters. It is required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	ManifestWorkName string `json:"manifestWorkName"`
}

// AppliedManifestWorkStatus has the objects that an agent has made for a work.
type AppliedManifestWorkStatus struct {
	// appliedResources are the objects, at most 2048.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=2048
	AppliedResources []AppliedManifestResourceMeta `json:"appliedResources,omitempty"`
	// evictionStartTime is since when the work is missing on the hub, or the agent belongs to another hub. The objects are
	// deleted after a grace period from then on.
	// +optional
	EvictionStartTime *metav1.Time `json:"evictionStartTime,omitempty"`
}

// AppliedManifestResourceMeta is an object that an agent has made.
type AppliedManifestResourceMeta struct {
	ResourceIdentifier `json:",inline"`
	// version is the API version, 1 to 253 characters. It is required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Version string `json:"version"`
	// uid is the UID of the object, at most 253 characters. Another object of the same name is left alone.
	// +optional
	// +k8s:validation:maxLength=253
	UID string `json:"uid,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AppliedManifestWorkList is a list of AppliedManifestWork.
type AppliedManifestWorkList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the applied works.
	Items []AppliedManifestWork `json:"items"`
}
