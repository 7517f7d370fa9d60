// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementDecision has clusters that a placement has chosen. Those of one placement have the label
// cluster.open-cluster-management.io/placement=<name of the placement>; together they have each chosen cluster once. To
// follow a placement, watch them by that label. There is always at least one.
type PlacementDecision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The hub names decisions <placement>-decision-<number>, from 1 on.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status has the clusters. The hub writes it.
	// +optional
	Status PlacementDecisionStatus `json:"status,omitempty"`
}

// Labels of a PlacementDecision.
const (
	// PlacementLabel has the name of the placement.
	PlacementLabel string = "cluster.open-cluster-management.io/placement"
	// DecisionGroupIndexLabel has the index of the group that the clusters are in, from 0 on without gaps.
	DecisionGroupIndexLabel string = "cluster.open-cluster-management.io/decision-group-index"
	// DecisionGroupNameLabel has the name of the group that the clusters are in, or is empty.
	DecisionGroupNameLabel string = "cluster.open-cluster-management.io/decision-group-name"
)

// PlacementDecisionStatus has the clusters of a PlacementDecision.
type PlacementDecisionStatus struct {
	// decisions are the clusters, at most 100. It is always there, also without clusters.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=100
	Decisions []ClusterDecision `json:"decisions"`
}

// ClusterDecision is one chosen cluster.
type ClusterDecision struct {
	// clusterName is the name of the ManagedCluster. No other decision of the placement has it.
	// +k8s:validation:maxLength=253
	ClusterName string `json:"clusterName"`
	// reason is why the cluster was chosen, at most 1024 characters. It is always there, also when it is empty.
	// +optional
	// +k8s:validation:maxLength=1024
	Reason string `json:"reason"`
	// score is the score of the cluster. It is there only for a placement with sortBy Score, and left out when it is 0.
	// +optional
	Score int64 `json:"score,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementDecisionList is a list of PlacementDecision.
type PlacementDecisionList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the decisions.
	Items []PlacementDecision `json:"items"`
}
