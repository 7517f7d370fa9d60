// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlacementStatus represents the observed state of a Placement.
type PlacementStatus struct {
	// numberOfSelectedClusters is the number of selected clusters.
	NumberOfSelectedClusters int32
	// decisionGroups are the groups of the decisions, ordered by index.
	DecisionGroups []DecisionGroupStatus
	// conditions represent the latest observations of the placement, at most 128. PlacementMisconfigured reports whether the spec is invalid, and
	// PlacementSatisfied whether the requested clusters were found.
	Conditions []metav1.Condition
	// lastScoreUpdateTime is the time at which scores were last written to the decisions.
	LastScoreUpdateTime *metav1.Time
}

// DecisionGroupStatus represents a group of the decisions.
type DecisionGroupStatus struct {
	// decisionGroupIndex is the index of the group. Indices start at 0 and have no gaps.
	DecisionGroupIndex int32
	// decisionGroupName is the groupName of the spec, at most 63 characters. It is empty for groups without a name.
	DecisionGroupName string
	// decisions are the names of the PlacementDecisions of the group, at most 1024.
	Decisions []string
	// clusterCount is the number of clusters in the group.
	ClustersCount int32
}

// PlacementConditionSatisfied reports whether the clusters that the spec requests were found.
const PlacementConditionSatisfied = "PlacementSatisfied"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementList is a list of Placements.
type PlacementList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the Placements.
	Items []Placement
}
