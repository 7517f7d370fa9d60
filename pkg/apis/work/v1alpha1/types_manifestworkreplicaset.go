// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManifestWorkReplicaSet creates a ManifestWork for each cluster that placements of its namespace select, and deletes the ManifestWork of a cluster
// that is no longer selected. The works can do only what the last author of the spec may do. The server records this user in the annotation
// work.clusterhub.dev/author.
type ManifestWorkReplicaSet struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. Namespace and name have at most 62 characters in total, since both are in the value of a label of
	// each work.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the desired state of the replica set: the works, the clusters and the rollout. Users write it.
	// +optional
	Spec ManifestWorkReplicaSetSpec `json:"spec,omitempty"`
	// status represents the observed state of the replica set. The hub writes it.
	// +optional
	Status ManifestWorkReplicaSetStatus `json:"status,omitempty"`
}

// ManifestWorkReplicaSetSpec defines the desired state of a ManifestWorkReplicaSet.
type ManifestWorkReplicaSetSpec struct {
	// manifestWorkTemplate is the spec of the works. Required.
	// +required
	ManifestWorkTemplate workv1.ManifestWorkSpec `json:"manifestWorkTemplate"`
	// placementRefs are placements of the namespace, 1 to 64, with unique names. Required.
	// +required
	// +listType=atomic
	// +k8s:validation:minItems=1
	// +k8s:validation:maxItems=64
	PlacementRefs []LocalPlacementReference `json:"placementRefs"`
	// cascadeDeletionPolicy is Background or Foreground. With Background (the default), the replica set is deleted immediately, and its works after
	// it. With Foreground, the replica set exists until its works are gone.
	// +optional
	// +default="Background"
	CascadeDeletionPolicy CascadeDeletionPolicy `json:"cascadeDeletionPolicy,omitempty"`
}

// CascadeDeletionPolicy defines the order in which a replica set and its works are deleted.
// +enum
type CascadeDeletionPolicy string

const (
	// Foreground deletes the works before the replica set.
	Foreground CascadeDeletionPolicy = "Foreground"
	// Background deletes the replica set before the works.
	Background CascadeDeletionPolicy = "Background"
)

// LocalPlacementReference references a placement of the namespace, and defines how changes are rolled out to its clusters.
type LocalPlacementReference struct {
	// name is the name of the placement, 1 to 63 characters. Required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Name string `json:"name"`
	// rolloutStrategy defines how changes are rolled out to the clusters of the placement. The default is all clusters at once.
	// +optional
	RolloutStrategy clusterv1alpha1.RolloutStrategy `json:"rolloutStrategy"`
}

// ManifestWorkReplicaSetStatus represents the observed state of a ManifestWorkReplicaSet.
type ManifestWorkReplicaSetStatus struct {
	// conditions represent the latest observations of the replica set, at most 128. PlacementVerified reports whether the placements have decisions,
	// PlacementRolledOut whether all clusters have the current template, and ManifestworkApplied whether the works are applied and in their desired
	// state.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=128
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// summary counts the works of all placements.
	// +optional
	Summary ManifestWorkReplicaSetSummary `json:"summary"`
	// placementSummary counts the works of each placement, at most 64 entries.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	PlacementsSummary []PlacementSummary `json:"placementSummary,omitempty"`
}

// PlacementSummary counts the works of a placement.
type PlacementSummary struct {
	// name is the name of the placement, 1 to 63 characters. Required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Name string `json:"name"`
	// availableDecisionGroups is a text with the number of decision groups of the placement that have their works, and the numbers of works and
	// clusters, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	AvailableDecisionGroups string `json:"availableDecisionGroups"`
	// summary counts the works of the placement.
	// +optional
	Summary ManifestWorkReplicaSetSummary `json:"summary"`
}

// ManifestWorkReplicaSetSummary counts works by their state. All numbers are 0 or more.
type ManifestWorkReplicaSetSummary struct {
	// total is the number of works that exist.
	// +optional
	// +k8s:validation:minimum=0
	Total int `json:"total"`
	// progressing is the number of works whose condition Progressing is True.
	// +optional
	// +k8s:validation:minimum=0
	Progressing int `json:"progressing"`
	// available is the number of works whose condition Available is True.
	// +optional
	// +k8s:validation:minimum=0
	Available int `json:"available"`
	// degraded is the number of works whose condition Degraded is True.
	// +optional
	// +k8s:validation:minimum=0
	Degraded int `json:"degraded"`
	// applied is the number of works whose condition Applied is True.
	// +optional
	// +k8s:validation:minimum=0
	Applied int `json:"applied"`
	// desiredTotal is the desired number of works, one for each cluster.
	// +optional
	// +k8s:validation:minimum=0
	DesiredTotal int `json:"desiredTotal"`
	// updated is the number of works that have the current template.
	// +optional
	// +k8s:validation:minimum=0
	Updated int `json:"updated"`
}

// Types of conditions of a ManifestWorkReplicaSet.
const (
	// ManifestWorkReplicaSetConditionPlacementVerified reports whether all placements exist and have decisions.
	ManifestWorkReplicaSetConditionPlacementVerified string = "PlacementVerified"
	// ManifestWorkReplicaSetConditionPlacementRolledOut reports whether the current template is rolled out to all clusters.
	ManifestWorkReplicaSetConditionPlacementRolledOut string = "PlacementRolledOut"
	// ManifestWorkReplicaSetConditionManifestworkApplied reports whether all works are applied and in their desired state.
	ManifestWorkReplicaSetConditionManifestworkApplied string = "ManifestworkApplied"
)

// Reasons of conditions of a ManifestWorkReplicaSet.
const (
	// ReasonPlacementDecisionNotFound is set when a placement does not exist.
	ReasonPlacementDecisionNotFound = "PlacementDecisionNotFound"
	// ReasonPlacementDecisionEmpty is set when a placement has no decisions, or no cluster is selected.
	ReasonPlacementDecisionEmpty = "PlacementDecisionEmpty"
	// ReasonAsExpected is set when the observed state is the desired one.
	ReasonAsExpected = "AsExpected"
	// ReasonProcessing is set when works have not reached their desired state yet.
	ReasonProcessing = "Processing"
	// ReasonNotAsExpected is set when works fail to reach their desired state, or when a rollout strategy is invalid.
	ReasonNotAsExpected = "NotAsExpected"
	// ReasonProgressing is set when the rollout is in progress.
	ReasonProgressing = "Progressing"
	// ReasonComplete is set when the rollout is complete.
	ReasonComplete = "Complete"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManifestWorkReplicaSetList is a list of ManifestWorkReplicaSets.
type ManifestWorkReplicaSetList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the ManifestWorkReplicaSets.
	Items []ManifestWorkReplicaSet `json:"items"`
}
