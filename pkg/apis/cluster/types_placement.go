// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Placement selects clusters for the resources in its namespace.
type Placement struct {
	metav1.TypeMeta
	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// spec defines the desired state of the placement: the clusters to select, and their number.
	Spec PlacementSpec
	// status represents the observed state of the placement.
	Status PlacementStatus
}

// PlacementSpec defines the clusters that a placement selects.
type PlacementSpec struct {
	// clusterSets are names of cluster sets, at most 256.
	ClusterSets []string
	// numberOfClusters is the maximum number of selected clusters, 0 or more. Clusters with higher scores are selected first, and by name if scores
	// are equal.
	NumberOfClusters *int32
	// predicates define the eligible clusters: those that match at least one predicate.
	Predicates []ClusterPredicate
	// prioritizerPolicy defines how eligible clusters are scored.
	PrioritizerPolicy PrioritizerPolicy
	// spreadPolicy defines how the selected clusters are spread over regions, zones or other topologies.
	SpreadPolicy SpreadPolicy
	// tolerations make clusters with taints eligible: each taint of a cluster requires a toleration that matches it, unless its effect does not
	// exclude the cluster.
	Tolerations []Toleration
	// decisionStrategy defines how the selected clusters are divided into groups.
	DecisionStrategy DecisionStrategy
	// sortBy is the order of the clusters in the decisions, and in each of their groups: ClusterName or Score.
	SortBy PlacementSortByType
	// scoreRateLimit is the minimum interval between two updates of the decisions that change only scores: an integer followed by h, m or s, such as
	// 30s.
	ScoreRateLimit string
}

// PlacementSortByType is an order of the clusters in decisions.
type PlacementSortByType string

const (
	// PlacementSortByClusterName orders clusters by name.
	PlacementSortByClusterName PlacementSortByType = "ClusterName"
	// PlacementSortByScore orders clusters by score, the highest first, and by name if scores are equal.
	PlacementSortByScore PlacementSortByType = "Score"
)

// ClusterPredicate is a condition that makes a cluster eligible.
type ClusterPredicate struct {
	// requiredClusterSelector is the selector that a cluster must match. A selected cluster that no longer matches is removed from the decisions.
	RequiredClusterSelector ClusterSelector
}

// ClusterSelector selects the clusters that match all of its fields.
type ClusterSelector struct {
	// labelSelector selects clusters by their labels, with at most 128 match labels and 128 match expressions.
	LabelSelector metav1.LabelSelector
	// claimSelector selects clusters by status.clusterClaims.
	ClaimSelector ClusterClaimSelector
	// celSelector selects clusters by CEL expressions on any of their fields.
	CelSelector ClusterCelSelector
}

// ClusterClaimSelector selects clusters by status.clusterClaims.
type ClusterClaimSelector struct {
	// matchExpressions are requirements on claims, as in a label selector: key is the name of a claim, and operator is In, NotIn, Exists or
	// DoesNotExist.
	MatchExpressions []metav1.LabelSelectorRequirement
}

// ClusterCelSelector selects clusters by CEL expressions.
type ClusterCelSelector struct {
	// celExpressions are CEL expressions that must all evaluate to true: at most 16, each of 1 to 4096 characters.
	CelExpressions []string
}

// PrioritizerPolicy defines how clusters are scored.
type PrioritizerPolicy struct {
	// mode is Additive (the default) or Exact.
	Mode PrioritizerPolicyModeType
	// configurations are prioritizers and their weights, at most 64.
	Configurations []PrioritizerConfig
}

// PrioritizerPolicyModeType defines whether prioritizers that are not listed are used.
type PrioritizerPolicyModeType string

const (
	// PrioritizerPolicyModeAdditive uses Balance and Steady in addition to the listed prioritizers.
	PrioritizerPolicyModeAdditive PrioritizerPolicyModeType = "Additive"
	// PrioritizerPolicyModeExact uses only the listed prioritizers.
	PrioritizerPolicyModeExact PrioritizerPolicyModeType = "Exact"
)

// PrioritizerConfig is a prioritizer and its weight.
type PrioritizerConfig struct {
	// scoreCoordinate identifies the prioritizer.
	ScoreCoordinate *ScoreCoordinate
	// weight is the weight of the prioritizer, -10 to 10.
	Weight *int32
}

// The types of a ScoreCoordinate.
const (
	// ScoreCoordinateTypeBuiltIn is the type of the prioritizers that the hub computes.
	ScoreCoordinateTypeBuiltIn string = "BuiltIn"
	// ScoreCoordinateTypeAddOn is the type of the prioritizers that read AddOnPlacementScores.
	ScoreCoordinateTypeAddOn string = "AddOn"
)

// The prioritizers that the hub computes.
const (
	// PrioritizerBalance prefers clusters that fewer other placements have selected.
	PrioritizerBalance string = "Balance"
	// PrioritizerSteady prefers clusters that the placement has already selected.
	PrioritizerSteady string = "Steady"
	// PrioritizerResourceAllocatableCPU prefers clusters with more CPU in status.allocatable.
	PrioritizerResourceAllocatableCPU string = "ResourceAllocatableCPU"
	// PrioritizerResourceAllocatableMemory prefers clusters with more memory in status.allocatable.
	PrioritizerResourceAllocatableMemory string = "ResourceAllocatableMemory"
)

// ScoreCoordinate identifies a prioritizer.
type ScoreCoordinate struct {
	// type is BuiltIn (the default) or AddOn.
	Type string
	// builtIn is the name of a prioritizer of the hub.
	BuiltIn string
	// addOn identifies a score of AddOnPlacementScores.
	AddOn *AddOnScore
}

// AddOnScore identifies a score of the AddOnPlacementScores of one name, of which each cluster has one in its namespace.
type AddOnScore struct {
	// resourceName is the name of the AddOnPlacementScores, 1 to 253 characters. Required.
	ResourceName string
	// scoreName is the name of a score in the AddOnPlacementScores, 1 to 253 characters. Required.
	ScoreName string
}
