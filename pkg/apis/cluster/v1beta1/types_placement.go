// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Placement chooses clusters for what is in its namespace. It chooses from the sets that are bound to the namespace by a
// ManagedClusterSetBinding, and the hub writes the result to PlacementDecisions with the label
// cluster.open-cluster-management.io/placement=<name of the placement>. A cluster that leaves the decisions loses what was
// put there because of them.
type Placement struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name has at most 63 characters: it is the value of a label of every
	// PlacementDecision.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state: which clusters, and how many. Users write it. An empty one chooses every cluster of all
	// bound sets.
	// +optional
	Spec PlacementSpec `json:"spec"`
	// status is the observed state. The hub writes it.
	// +optional
	Status PlacementStatus `json:"status,omitempty"`
}

// PlacementSpec says which clusters a placement chooses. A cluster has to pass all of clusterSets, predicates and
// tolerations; prioritizerPolicy and spreadPolicy say which of those that pass are taken first.
type PlacementSpec struct {
	// clusterSets are names of sets, at most 256. Clusters come from those of them that are bound to the namespace. The
	// default is all sets that are bound.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=256
	ClusterSets []string `json:"clusterSets,omitempty"`
	// numberOfClusters is how many clusters are chosen at most, 0 or more: those with the highest scores, by name where
	// scores are equal. If there are fewer, all are chosen, and the condition PlacementSatisfied is False. The default is
	// all clusters that pass.
	// +optional
	// +k8s:validation:minimum=0
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`
	// predicates say which clusters pass: those that match at least one predicate. At most 64. The default is all
	// clusters.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	Predicates []ClusterPredicate `json:"predicates,omitempty"`
	// prioritizerPolicy says how the clusters that pass are scored.
	// +optional
	PrioritizerPolicy PrioritizerPolicy `json:"prioritizerPolicy"`
	// spreadPolicy says how the chosen clusters are spread over regions, zones or other topologies.
	// +optional
	SpreadPolicy SpreadPolicy `json:"spreadPolicy,omitempty"`
	// tolerations let clusters with taints pass: every taint of a cluster needs a toleration that matches it, unless its
	// effect does not keep the cluster out. At most 128.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	Tolerations []Toleration `json:"tolerations,omitempty"`
	// decisionStrategy says how the chosen clusters are divided into groups.
	// +optional
	DecisionStrategy DecisionStrategy `json:"decisionStrategy,omitempty"`
	// sortBy is the order of the clusters in the decisions, and in each of their groups. ClusterName (the default): by
	// name. Score: the highest score first, by name where scores are equal; only then do decisions show scores.
	// +optional
	// +default="ClusterName"
	SortBy PlacementSortByType `json:"sortBy,omitempty"`
	// scoreRateLimit is the time between two writes of the decisions that change nothing but scores: a whole number and
	// h, m or s, such as 30s. The default is 1m. Only for sortBy Score.
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
	// PlacementSortByClusterName orders by the name of the cluster.
	PlacementSortByClusterName PlacementSortByType = "ClusterName"
	// PlacementSortByScore puts the highest score first, and orders by name where scores are equal.
	PlacementSortByScore PlacementSortByType = "Score"
)

// ClusterPredicate is one way in which a cluster can pass.
type ClusterPredicate struct {
	// requiredClusterSelector is the selector that a cluster must match, also after it was chosen: a cluster that no longer matches leaves
	// the decisions.
	// +optional
	RequiredClusterSelector ClusterSelector `json:"requiredClusterSelector,omitempty"`
}

// ClusterSelector selects clusters that match all of its parts. An empty one selects every cluster.
type ClusterSelector struct {
	// labelSelector selects clusters by their labels, with at most 128 match labels and 128 match expressions.
	// +optional
	LabelSelector metav1.LabelSelector `json:"labelSelector,omitempty"`
	// claimSelector selects clusters by status.clusterClaims.
	// +optional
	ClaimSelector ClusterClaimSelector `json:"claimSelector,omitempty"`
	// celSelector selects clusters by expressions on all of their fields.
	// +optional
	CelSelector ClusterCelSelector `json:"celSelector,omitempty"`
}

// ClusterClaimSelector selects clusters by status.clusterClaims. An empty one selects every cluster.
type ClusterClaimSelector struct {
	// matchExpressions are requirements on claims, as those of a label selector are on labels: key is the name of a
	// claim, operator In, NotIn, Exists or DoesNotExist. A cluster has to meet all of them. At most 128.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// ClusterCelSelector selects clusters by expressions in CEL. An empty one selects every cluster.
type ClusterCelSelector struct {
	// celExpressions are expressions in CEL, each of which has to be true: at most 16, of 1 to 4096 bytes. The variable
	// managedCluster is the ManagedCluster; managedCluster.scores("x") are the scores of the AddOnPlacementScore x of the
	// cluster. An expression that fails or costs too much for a cluster does not select it.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=16
	CelExpressions []string `json:"celExpressions,omitempty"`
}

// PrioritizerPolicy says how clusters are scored. The score of a cluster is the sum of weight times score of every
// prioritizer, each of which scores a cluster from -100 to 100.
type PrioritizerPolicy struct {
	// mode is Additive (the default) or Exact. Additive: the prioritizers Balance and Steady have the weight 1 unless
	// configurations say otherwise. Exact: only the prioritizers in configurations count.
	// +optional
	// +default="Additive"
	Mode PrioritizerPolicyModeType `json:"mode,omitempty"`
	// configurations are prioritizers and their weights, at most 64.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	Configurations []PrioritizerConfig `json:"configurations,omitempty"`
}

// PrioritizerPolicyModeType says what counts beside the prioritizers that are listed.
// +enum
type PrioritizerPolicyModeType string

const (
	// PrioritizerPolicyModeAdditive counts Balance and Steady too.
	PrioritizerPolicyModeAdditive PrioritizerPolicyModeType = "Additive"
	// PrioritizerPolicyModeExact counts nothing else.
	PrioritizerPolicyModeExact PrioritizerPolicyModeType = "Exact"
)

// PrioritizerConfig is a prioritizer and its weight.
type PrioritizerConfig struct {
	// scoreCoordinate is the prioritizer. It is required.
	// +required
	ScoreCoordinate *ScoreCoordinate `json:"scoreCoordinate,omitempty"`
	// weight is how much the prioritizer counts, -10 to 10. The default is 1; 0 turns the prioritizer off; below 0, clusters
	// with low scores are preferred.
	// +optional
	// +default=1
	// +k8s:validation:minimum=-10
	// +k8s:validation:maximum=10
	Weight *int32 `json:"weight,omitempty"`
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
	// +optional
	// +default="BuiltIn"
	// +k8s:validation:maxLength=16
	Type string `json:"type,omitempty"`
	// builtIn is the name of a prioritizer of the hub. Balance: clusters that fewer other placements have chosen. Steady:
	// clusters that this placement has chosen before. ResourceAllocatableCPU and ResourceAllocatableMemory: clusters with
	// more of it in status.allocatable. Only for type BuiltIn, which needs it.
	// +optional
	// +k8s:validation:maxLength=63
	BuiltIn string `json:"builtIn,omitempty"`
	// addOn is a score of the AddOnPlacementScores. Only for type AddOn, which needs it.
	// +optional
	AddOn *AddOnScore `json:"addOn,omitempty"`
}

// AddOnScore names a score of the AddOnPlacementScores of one name, one in the namespace of each cluster.
type AddOnScore struct {
	// resourceName is the name of the AddOnPlacementScores, 1 to 253 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	ResourceName string `json:"resourceName"`
	// scoreName is the name of the score in them, 1 to 253 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	ScoreName string `json:"scoreName"`
}
