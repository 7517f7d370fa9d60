// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AddOnPlacementScore contains scores of one cluster, by which placements can rank clusters.
type AddOnPlacementScore struct {
	metav1.TypeMeta
	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// status contains the scores.
	Status AddOnPlacementScoreStatus
}

// AddOnPlacementScoreStatus contains the scores of a cluster.
type AddOnPlacementScoreStatus struct {
	// conditions represent the latest observations of the computation of the scores, at most 128.
	Conditions []metav1.Condition
	// scores are the scores of the cluster, at most 512, with unique names.
	Scores []AddOnPlacementScoreItem
	// validUntil is the time at which the scores expire. Placements use 0 for each expired score.
	ValidUntil *metav1.Time
}

// AddOnPlacementScoreItem is a score of a cluster.
type AddOnPlacementScoreItem struct {
	// name is the name of the score, 1 to 253 characters. Required.
	Name string
	// value is the score, -100 to 100.
	Value int32
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AddOnPlacementScoreList is a list of AddOnPlacementScores.
type AddOnPlacementScoreList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the AddOnPlacementScores.
	Items []AddOnPlacementScore
}
