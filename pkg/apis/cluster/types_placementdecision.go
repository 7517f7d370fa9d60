// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementDecision contains clusters that a placement has selected.
type PlacementDecision struct {
	metav1.TypeMeta
	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// status contains the selected clusters.
	Status PlacementDecisionStatus
}

// PlacementLabel is the label of a PlacementDecision with the name of the placement.
const PlacementLabel = "cluster.open-cluster-management.io/placement"

// PlacementDecisionStatus contains the clusters of a PlacementDecision.
type PlacementDecisionStatus struct {
	// decisions are the selected clusters, at most 100.
	Decisions []ClusterDecision
}

// ClusterDecision represents a selected cluster.
type ClusterDecision struct {
	// clusterName is the name of the ManagedCluster.
	ClusterName string
	// reason describes why the cluster was selected, at most 1024 characters.
	Reason string
	// score is the score of the cluster.
	Score int64
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementDecisionList is a list of PlacementDecisions.
type PlacementDecisionList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the PlacementDecisions.
	Items []PlacementDecision
}
