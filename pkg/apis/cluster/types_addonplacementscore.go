// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AddOnPlacementScore has scores of one cluster, which placements may choose by.
type AddOnPlacementScore struct {
	metav1.TypeMeta
	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// status has the scores.
	Status AddOnPlacementScoreStatus
}

// AddOnPlacementScoreStatus has the scores of a cluster.
type AddOnPlacementScoreStatus struct {
	// conditions say how the scores came about, at most 128.
	Conditions []metav1.Condition
	// scores are the scores by their names, at most 512.
	Scores []AddOnPlacementScoreItem
	// validUntil is when the scores stop counting: from then on, placements take 0 for each.
	ValidUntil *metav1.Time
}

// AddOnPlacementScoreItem is one score.
type AddOnPlacementScoreItem struct {
	// name is the name of the score, 1 to 253 characters.
	Name string
	// value is the score, -100 to 100.
	Value int32
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AddOnPlacementScoreList is a list of AddOnPlacementScore.
type AddOnPlacementScoreList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the AddOnPlacementScores.
	Items []AddOnPlacementScore
}
