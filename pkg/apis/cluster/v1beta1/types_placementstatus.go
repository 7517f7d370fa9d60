// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlacementStatus is the observed state of a Placement.
type PlacementStatus struct {
	// numberOfSelectedClusters is the number of chosen clusters.
	// +optional
	// +k8s:validation:minimum=0
	NumberOfSelectedClusters int32 `json:"numberOfSelectedClusters"`
	// decisionGroups are the groups of the decisions by their index. Where nothing is chosen there is one, without
	// clusters. At most 2048.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=2048
	DecisionGroups []DecisionGroupStatus `json:"decisionGroups,omitempty"`
	// conditions say whether the spec can be followed (PlacementMisconfigured), and whether the clusters that it asks for
	// were found (PlacementSatisfied). At most 128.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=128
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// lastScoreUpdateTime is when scores were last written to the decisions. Only for sortBy Score.
	// +optional
	LastScoreUpdateTime *metav1.Time `json:"lastScoreUpdateTime,omitempty"`
}

// DecisionGroupStatus is a group of the decisions.
type DecisionGroupStatus struct {
	// decisionGroupIndex is the index of the group, from 0 on without gaps.
	// +optional
	// +k8s:validation:minimum=0
	DecisionGroupIndex int32 `json:"decisionGroupIndex"`
	// decisionGroupName is the groupName of the spec, or empty: at most 63 characters.
	// +optional
	// +k8s:validation:maxLength=63
	DecisionGroupName string `json:"decisionGroupName"`
	// decisions are the names of the PlacementDecisions of the group, at most 1024.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=1024
	Decisions []string `json:"decisions,omitempty"`
	// clusterCount is the number of clusters in the group.
	// +optional
	// +k8s:validation:minimum=0
	ClustersCount int32 `json:"clusterCount"`
}

// Condition types of a Placement.
const (
	// PlacementConditionSatisfied is True when the clusters that the spec asks for were found.
	PlacementConditionSatisfied string = "PlacementSatisfied"
	// PlacementConditionMisconfigured is True when the spec cannot be followed.
	PlacementConditionMisconfigured string = "PlacementMisconfigured"
)

// PlacementDisableAnnotation with the value "true" prevents the hub from changing a placement and its decisions, so that another controller
// can write them.
const PlacementDisableAnnotation = "cluster.open-cluster-management.io/experimental-scheduling-disable"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementList is a list of Placement.
type PlacementList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the placements.
	Items []Placement `json:"items"`
}
