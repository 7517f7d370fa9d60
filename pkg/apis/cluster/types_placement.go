// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Placement chooses clusters for what is in its namespace.
type Placement struct {
	metav1.TypeMeta
	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// spec is the desired state: which clusters, and how many.
	Spec PlacementSpec
	// status is the observed state.
	Status PlacementStatus
}

// PlacementSpec says which clusters a placement chooses.
type PlacementSpec struct {
	// clusterSets are names of sets, at most 256.
	ClusterSets []string
	// numberOfClusters is how many clusters are chosen at most, 0 or more: those with the highest scores, by name where
	// scores are equal.
	NumberOfClusters *int32
	// predicates say which clusters pass: those that match at least one predicate.
	Predicates []ClusterPredicate
	// prioritizerPolicy says how the clusters that pass are scored.
	PrioritizerPolicy PrioritizerPolicy
	// spreadPolicy says how the chosen clusters are spread over regions, zones or other topologies.
	SpreadPolicy SpreadPolicy
	// tolerations let clusters with taints pass: every taint of a cluster needs a toleration that matches it, unless
	// its effect does not keep the cluster out.
	Tolerations []Toleration
	// decisionStrategy says how the chosen clusters are divided into groups.
	DecisionStrategy DecisionStrategy
	// sortBy is the order of the clusters in the decisions, and in each of their groups.
	SortBy PlacementSortByType
	// scoreRateLimit is the time between two writes of the decisions that change nothing but scores: a whole number and
	// h, m or s, such as 30s.
	ScoreRateLimit string
}

// PlacementSortByType is an order of the clusters in decisions.
type PlacementSortByType string

const (
	// PlacementSortByClusterName orders by the name of the cluster.
	PlacementSortByClusterName PlacementSortByType = "ClusterName"
	// PlacementSortByScore puts the highest score first, and orders by name where scores are equal.
	PlacementSortByScore PlacementSortByType = "Score"
)

// ClusterPredicate is one way in which a cluster can pass.
type ClusterPredicate struct {
	// requiredClusterSelector is the selector that a cluster must match, also after it was chosen: a cluster that no longer matches leaves
	// the decisions.
	RequiredClusterSelector ClusterSelector
}

// ClusterSelector selects clusters that match all of its parts.
type ClusterSelector struct {
	// labelSelector selects clusters by their labels, with at most 128 match labels and 128 match expressions.
	LabelSelector metav1.LabelSelector
	// claimSelector selects clusters by status.clusterClaims.
	ClaimSelector ClusterClaimSelector
	// celSelector selects clusters by expressions on all of their fields.
	CelSelector ClusterCelSelector
}

// ClusterClaimSelector selects clusters by status.clusterClaims.
type ClusterClaimSelector struct {
	// matchExpressions are requirements on claims, as those of a label selector are on labels: key is the name of a
	// claim, operator In, NotIn, Exists or DoesNotExist.
	MatchExpressions []metav1.LabelSelectorRequirement
}

// ClusterCelSelector selects clusters by expressions in CEL.
type ClusterCelSelector struct {
	// celExpressions are expressions in CEL, each of which has to be true: at most 16, of 1 to 4096 bytes.
	CelExpressions []string
}

// PrioritizerPolicy says how clusters are scored.
type PrioritizerPolicy struct {
	// mode is Additive (the default) or Exact.
	Mode PrioritizerPolicyModeType
	// configurations are prioritizers and their weights, at most 64.
	Configurations []PrioritizerConfig
}

// PrioritizerPolicyModeType says what counts beside the prioritizers that are listed.
type PrioritizerPolicyModeType string

const (
	// PrioritizerPolicyModeAdditive counts Balance and Steady too.
	PrioritizerPolicyModeAdditive PrioritizerPolicyModeType = "Additive"
	// PrioritizerPolicyModeExact counts nothing else.
	PrioritizerPolicyModeExact PrioritizerPolicyModeType = "Exact"
)

// PrioritizerConfig is a prioritizer and its weight.
type PrioritizerConfig struct {
	// scoreCoordinate is the prioritizer.
	ScoreCoordinate *ScoreCoordinate
	// weight is how much the prioritizer counts, -10 to 10.
	Weight *int32
}

// The types of a ScoreCoordinate.
const (
	// ScoreCoordinateTypeBuiltIn is a prioritizer that the hub computes.
	ScoreCoordinateTypeBuiltIn string = "BuiltIn"
	// ScoreCoordinateTypeAddOn takes the scores of AddOnPlacementScores.
	ScoreCoordinateTypeAddOn string = "AddOn"
)

// The prioritizers that the hub computes.
const (
	// PrioritizerBalance prefers clusters that fewer other placements have chosen.
	PrioritizerBalance string = "Balance"
	// PrioritizerSteady prefers clusters that this placement has chosen before.
	PrioritizerSteady string = "Steady"
	// PrioritizerResourceAllocatableCPU prefers clusters with more CPU in status.allocatable.
	PrioritizerResourceAllocatableCPU string = "ResourceAllocatableCPU"
	// PrioritizerResourceAllocatableMemory prefers clusters with more memory in status.allocatable.
	PrioritizerResourceAllocatableMemory string = "ResourceAllocatableMemory"
)

// ScoreCoordinate names a prioritizer.
type ScoreCoordinate struct {
	// type is BuiltIn (the default) or AddOn.
	Type string
	// builtIn is the name of a prioritizer of the hub.
	BuiltIn string
	// addOn is a score of the AddOnPlacementScores.
	AddOn *AddOnScore
}

// AddOnScore names a score of the AddOnPlacementScores of one name, one in the namespace of each cluster.
type AddOnScore struct {
	// resourceName is the name of the AddOnPlacementScores, 1 to 253 characters.
	ResourceName string
	// scoreName is the name of the score in them, 1 to 253 characters.
	ScoreName string
}
