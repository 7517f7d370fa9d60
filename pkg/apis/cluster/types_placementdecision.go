// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementDecision has clusters that a placement has chosen.
type PlacementDecision struct {
	metav1.TypeMeta
	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// status has the clusters.
	Status PlacementDecisionStatus
}

// PlacementLabel of a PlacementDecision has the name of the placement.
const PlacementLabel = "cluster.open-cluster-management.io/placement"

// PlacementDecisionStatus has the clusters of a PlacementDecision.
type PlacementDecisionStatus struct {
	// decisions are the clusters, at most 100.
	Decisions []ClusterDecision
}

// ClusterDecision is one chosen cluster.
type ClusterDecision struct {
	// clusterName is the name of the ManagedCluster.
	ClusterName string
	// reason is why the cluster was chosen, at most 1024 characters.
	Reason string
	// score is the score of the cluster.
	Score int64
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementDecisionList is a list of PlacementDecision.
type PlacementDecisionList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the decisions.
	Items []PlacementDecision
}
