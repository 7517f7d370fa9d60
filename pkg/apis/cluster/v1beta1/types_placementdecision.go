// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementDecision contains clusters that a placement has selected. The decisions of a placement have the label
// cluster.open-cluster-management.io/placement=<name of the placement>, and together contain each selected cluster once. To follow a placement, watch
// the decisions with that label. There is always at least one.
type PlacementDecision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The hub names decisions <placement>-decision-<number>, starting at 1.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status contains the selected clusters. The hub writes it.
	// +optional
	Status PlacementDecisionStatus `json:"status,omitempty"`
}

// Labels of a PlacementDecision.
const (
	// PlacementLabel is the label of a PlacementDecision with the name of the placement.
	PlacementLabel string = "cluster.open-cluster-management.io/placement"
	// DecisionGroupIndexLabel is the label of a PlacementDecision with the index of the group of its clusters. Indices start at 0 and have no gaps.
	DecisionGroupIndexLabel string = "cluster.open-cluster-management.io/decision-group-index"
	// DecisionGroupNameLabel is the label of a PlacementDecision with the name of the group of its clusters. It is empty if the group has no name.
	DecisionGroupNameLabel string = "cluster.open-cluster-management.io/decision-group-name"
)

// PlacementDecisionStatus contains the clusters of a PlacementDecision.
type PlacementDecisionStatus struct {
	// decisions are the selected clusters, at most 100. The field is always present, even if it is empty.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=100
	Decisions []ClusterDecision `json:"decisions"`
}

// ClusterDecision represents a selected cluster.
type ClusterDecision struct {
	// clusterName is the name of the ManagedCluster. It is unique among all decisions of the placement. Required.
	// +k8s:validation:maxLength=253
	ClusterName string `json:"clusterName"`
	// reason describes why the cluster was selected, at most 1024 characters. The field is always present, even if it is empty.
	// +optional
	// +k8s:validation:maxLength=1024
	Reason string `json:"reason"`
	// score is the score of the cluster. It is set only if sortBy of the placement is Score, and omitted if it is 0.
	// +optional
	Score int64 `json:"score,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementDecisionList is a list of PlacementDecisions.
type PlacementDecisionList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the PlacementDecisions.
	Items []PlacementDecision `json:"items"`
}
