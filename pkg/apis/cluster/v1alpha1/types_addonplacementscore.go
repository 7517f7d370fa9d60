// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AddOnPlacementScore contains scores of one cluster, by which placements can rank clusters. Its namespace is the namespace of the cluster. The addOn
// of a placement's prioritizer references it by its name and the name of a score.
type AddOnPlacementScore struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status contains the scores. The program that computes them writes it.
	// +optional
	Status AddOnPlacementScoreStatus `json:"status,omitempty"`
}

// AddOnPlacementScoreStatus contains the scores of a cluster.
type AddOnPlacementScoreStatus struct {
	// conditions represent the latest observations of the computation of the scores, at most 128.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=128
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// scores are the scores of the cluster, at most 512, with unique names.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +k8s:validation:maxItems=512
	Scores []AddOnPlacementScoreItem `json:"scores,omitempty"`
	// validUntil is the time at which the scores expire. Placements use 0 for each expired score. By default, scores do not expire. The program that
	// writes the scores must renew it in time.
	// +optional
	ValidUntil *metav1.Time `json:"validUntil,omitempty"`
}

// AddOnPlacementScoreItem is a score of a cluster.
type AddOnPlacementScoreItem struct {
	// name is the name of the score, 1 to 253 characters. Required.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name"`
	// value is the score, -100 to 100. Placements prefer clusters with higher scores, unless they configure a negative weight. Required.
	// +k8s:validation:minimum=-100
	// +k8s:validation:maximum=100
	Value int32 `json:"value"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AddOnPlacementScoreList is a list of AddOnPlacementScores.
type AddOnPlacementScoreList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the AddOnPlacementScores.
	Items []AddOnPlacementScore `json:"items"`
}
