// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Placement selects clusters for the resources in its namespace. It selects them from the sets that are bound to the namespace by
// ManagedClusterSetBindings. The hub writes the result to PlacementDecisions with the label cluster.open-cluster-management.io/placement=<name of the
// placement>. What was deployed to a cluster because of a placement is removed when the cluster is no longer in its decisions.
type Placement struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name has at most 63 characters, since it is the value of a label of each PlacementDecision.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the desired state of the placement: the clusters to select, and their number. Users write it. An empty spec selects all clusters
	// of all bound sets.
	// +optional
	Spec PlacementSpec `json:"spec"`
	// status represents the observed state of the placement. The hub writes it.
	// +optional
	Status PlacementStatus `json:"status,omitempty"`
}

// PlacementSpec defines the clusters that a placement selects. A cluster is eligible if it passes all of clusterSets, predicates and tolerations.
// prioritizerPolicy and spreadPolicy define the order in which eligible clusters are selected.
type PlacementSpec struct {
	// clusterSets are names of cluster sets, at most 256, each of 1 to 253 characters. Clusters are selected from those of these sets that are bound to the namespace. The default
	// is all bound sets.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=256
	// +k8s:validation:items:minLength=1
	// +k8s:validation:items:maxLength=253
	ClusterSets []string `json:"clusterSets,omitempty"`
	// numberOfClusters is the maximum number of selected clusters, 0 or more. Clusters with higher scores are selected first, and by name if scores
	// are equal. If fewer clusters are eligible, all of them are selected, and the condition PlacementSatisfied is False. The default is all eligible
	// clusters.
	// +optional
	// +k8s:validation:minimum=0
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`
	// predicates define the eligible clusters: those that match at least one predicate. At most 64. The default is all clusters.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	Predicates []ClusterPredicate `json:"predicates,omitempty"`
	// prioritizerPolicy defines how eligible clusters are scored.
	// +optional
	PrioritizerPolicy PrioritizerPolicy `json:"prioritizerPolicy"`
	// spreadPolicy defines how the selected clusters are spread over regions, zones or other topologies.
	// +optional
	SpreadPolicy SpreadPolicy `json:"spreadPolicy,omitempty"`
	// tolerations make clusters with taints eligible: each taint of a cluster requires a toleration that matches it, unless its effect does not
	// exclude the cluster. At most 128.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	Tolerations []Toleration `json:"tolerations,omitempty"`
	// decisionStrategy defines how the selected clusters are divided into groups.
	// +optional
	DecisionStrategy DecisionStrategy `json:"decisionStrategy,omitempty"`
	// sortBy is the order of the clusters in the decisions, and in each of their groups: ClusterName or Score. With ClusterName (the default),
	// clusters are ordered by name. With Score, clusters with higher scores come first, by name if scores are equal. Only then do the decisions
	// contain scores.
	// +optional
	// +default="ClusterName"
	SortBy PlacementSortByType `json:"sortBy,omitempty"`
	// scoreRateLimit is the minimum interval between two updates of the decisions that change only scores: an integer followed by h, m or s, such as
	// 30s. The default is 1m. Used only if sortBy is Score.
	// +optional
	// +default="1m"
	// +k8s:validation:pattern="^[0-9]+[hms]$"
	// +k8s:validation:maxLength=16
	ScoreRateLimit string `json:"scoreRateLimit,omitempty"`
}

// PlacementSortByType is an order of the clusters in decisions.
// +enum
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
	// +optional
	RequiredClusterSelector ClusterSelector `json:"requiredClusterSelector,omitempty"`
}

// ClusterSelector selects the clusters that match all of its fields. An empty selector selects all clusters.
type ClusterSelector struct {
	// labelSelector selects clusters by their labels, with at most 128 match labels and 128 match expressions.
	// +optional
	LabelSelector metav1.LabelSelector `json:"labelSelector,omitempty"`
	// claimSelector selects clusters by status.clusterClaims.
	// +optional
	ClaimSelector ClusterClaimSelector `json:"claimSelector,omitempty"`
	// celSelector selects clusters by CEL expressions on any of their fields.
	// +optional
	CelSelector ClusterCelSelector `json:"celSelector,omitempty"`
}

// ClusterClaimSelector selects clusters by status.clusterClaims. An empty selector selects all clusters.
type ClusterClaimSelector struct {
	// matchExpressions are requirements on claims, as in a label selector: key is the name of a claim, and operator is In, NotIn, Exists or
	// DoesNotExist. A cluster must meet all of them. At most 128.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// ClusterCelSelector selects clusters by CEL expressions. An empty selector selects all clusters.
type ClusterCelSelector struct {
	// celExpressions are CEL expressions that must all evaluate to true: at most 16, each of 1 to 4096 characters. The variable managedCluster is the
	// ManagedCluster; managedCluster.scores("x") returns the scores of the AddOnPlacementScore x of the cluster. An expression that fails or exceeds
	// its cost limit for a cluster does not select the cluster.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=16
	// +k8s:validation:items:minLength=1
	// +k8s:validation:items:maxLength=4096
	CelExpressions []string `json:"celExpressions,omitempty"`
}

// PrioritizerPolicy defines how clusters are scored. The score of a cluster is the sum of weight times score over all prioritizers, each of which
// scores a cluster from -100 to 100.
type PrioritizerPolicy struct {
	// mode is Additive (the default) or Exact. With Additive, the prioritizers Balance and Steady have the weight 1 unless configurations override
	// it. With Exact, only the prioritizers in configurations are used.
	// +optional
	// +default="Additive"
	Mode PrioritizerPolicyModeType `json:"mode,omitempty"`
	// configurations are prioritizers and their weights, at most 64.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	Configurations []PrioritizerConfig `json:"configurations,omitempty"`
}

// PrioritizerPolicyModeType defines whether prioritizers that are not listed are used.
// +enum
type PrioritizerPolicyModeType string

const (
	// PrioritizerPolicyModeAdditive uses Balance and Steady in addition to the listed prioritizers.
	PrioritizerPolicyModeAdditive PrioritizerPolicyModeType = "Additive"
	// PrioritizerPolicyModeExact uses only the listed prioritizers.
	PrioritizerPolicyModeExact PrioritizerPolicyModeType = "Exact"
)

// PrioritizerConfig is a prioritizer and its weight.
type PrioritizerConfig struct {
	// scoreCoordinate identifies the prioritizer. Required.
	// +required
	ScoreCoordinate *ScoreCoordinate `json:"scoreCoordinate,omitempty"`
	// weight is the weight of the prioritizer, -10 to 10. The default is 1. 0 disables the prioritizer. With a negative weight, clusters with low
	// scores are preferred.
	// +optional
	// +default=1
	// +k8s:validation:minimum=-10
	// +k8s:validation:maximum=10
	Weight *int32 `json:"weight,omitempty"`
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
	// +optional
	// +default="BuiltIn"
	// +k8s:validation:maxLength=16
	Type string `json:"type,omitempty"`
	// builtIn is the name of a prioritizer of the hub. Balance prefers clusters that fewer other placements have selected. Steady prefers clusters
	// that the placement has already selected. ResourceAllocatableCPU and ResourceAllocatableMemory prefer clusters with more CPU or memory in
	// status.allocatable. Required if type is BuiltIn, and otherwise not used.
	// +optional
	// +k8s:validation:maxLength=63
	BuiltIn string `json:"builtIn,omitempty"`
	// addOn identifies a score of AddOnPlacementScores. Required if type is AddOn, and otherwise not used.
	// +optional
	AddOn *AddOnScore `json:"addOn,omitempty"`
}

// AddOnScore identifies a score of the AddOnPlacementScores of one name, of which each cluster has one in its namespace.
type AddOnScore struct {
	// resourceName is the name of the AddOnPlacementScores, 1 to 253 characters. Required.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	ResourceName string `json:"resourceName"`
	// scoreName is the name of a score in the AddOnPlacementScores, 1 to 253 characters. Required.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	ScoreName string `json:"scoreName"`
}
