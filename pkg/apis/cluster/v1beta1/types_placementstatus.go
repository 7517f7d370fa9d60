// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlacementStatus represents the observed state of a Placement.
type PlacementStatus struct {
	// numberOfSelectedClusters is the number of selected clusters.
	// +optional
	// +k8s:validation:minimum=0
	NumberOfSelectedClusters int32 `json:"numberOfSelectedClusters"`
	// decisionGroups are the groups of the decisions, ordered by index. If no cluster is selected, there is one group without clusters. At most 2048.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=2048
	DecisionGroups []DecisionGroupStatus `json:"decisionGroups,omitempty"`
	// conditions represent the latest observations of the placement, at most 128. PlacementMisconfigured reports whether the spec is invalid, and
	// PlacementSatisfied whether the requested clusters were found.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=128
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// lastScoreUpdateTime is the time at which scores were last written to the decisions. It is set only if sortBy is Score.
	// +optional
	LastScoreUpdateTime *metav1.Time `json:"lastScoreUpdateTime,omitempty"`
}

// DecisionGroupStatus represents a group of the decisions.
type DecisionGroupStatus struct {
	// decisionGroupIndex is the index of the group. Indices start at 0 and have no gaps.
	// +optional
	// +k8s:validation:minimum=0
	DecisionGroupIndex int32 `json:"decisionGroupIndex"`
	// decisionGroupName is the groupName of the spec, at most 63 characters. It is empty for groups without a name.
	// +optional
	// +k8s:validation:maxLength=63
	DecisionGroupName string `json:"decisionGroupName"`
	// decisions are the names of the PlacementDecisions of the group, at most 1024.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=1024
	// +k8s:validation:items:maxLength=253
	Decisions []string `json:"decisions,omitempty"`
	// clusterCount is the number of clusters in the group.
	// +optional
	// +k8s:validation:minimum=0
	ClustersCount int32 `json:"clusterCount"`
}

// Condition types of a Placement.
const (
	// PlacementConditionSatisfied reports whether the clusters that the spec requests were found.
	PlacementConditionSatisfied string = "PlacementSatisfied"
	// PlacementConditionMisconfigured reports whether the spec is invalid.
	PlacementConditionMisconfigured string = "PlacementMisconfigured"
)

// PlacementDisableAnnotation is the annotation of a placement that, with the value "true", prevents the hub from updating the placement and its
// decisions, so that another controller can write them.
const PlacementDisableAnnotation = "cluster.open-cluster-management.io/experimental-scheduling-disable"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementList is a list of Placements.
type PlacementList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the Placements.
	Items []Placement `json:"items"`
}
