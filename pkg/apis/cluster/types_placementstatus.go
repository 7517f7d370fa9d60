// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlacementStatus is the observed state of a Placement.
type PlacementStatus struct {
	// numberOfSelectedClusters is the number of chosen clusters.
	NumberOfSelectedClusters int32
	// decisionGroups are the groups of the decisions by their index.
	DecisionGroups []DecisionGroupStatus
	// conditions say whether the spec can be followed (PlacementMisconfigured), and whether the clusters that it asks
	// for were found (PlacementSatisfied).
	Conditions []metav1.Condition
	// lastScoreUpdateTime is when scores were last written to the decisions.
	LastScoreUpdateTime *metav1.Time
}

// DecisionGroupStatus is a group of the decisions.
type DecisionGroupStatus struct {
	// decisionGroupIndex is the index of the group, from 0 on without gaps.
	DecisionGroupIndex int32
	// decisionGroupName is the groupName of the spec, or empty: at most 63 characters.
	DecisionGroupName string
	// decisions are the names of the PlacementDecisions of the group, at most 1024.
	Decisions []string
	// clusterCount is the number of clusters in the group.
	ClustersCount int32
}

// PlacementConditionSatisfied is True when the clusters that the spec asks for were found.
const PlacementConditionSatisfied = "PlacementSatisfied"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementList is a list of Placement.
type PlacementList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the placements.
	Items []Placement
}
