// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

// SpreadPolicy defines how the selected clusters are spread over topologies.
type SpreadPolicy struct {
	// spreadConstraints are the spread constraints, the most important first: at most 8.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=8
	SpreadConstraints []SpreadConstraintsTerm `json:"spreadConstraints,omitempty"`
}

// SpreadConstraintsTerm limits the skew of the selected clusters over the values of a label or claim.
type SpreadConstraintsTerm struct {
	// topologyKey is the key of a label or the name of a claim, 1 to 316 characters. Clusters with the same value are in the same topology. Required.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=316
	// +k8s:validation:pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
	TopologyKey string `json:"topologyKey"`
	// topologyKeyType is the type of topologyKey: Label or Claim. Required.
	TopologyKeyType TopologyKeyType `json:"topologyKeyType"`
	// maxSkew is the maximum difference between the numbers of selected clusters in a topology and in the topology with the fewest, 1 or more. The
	// default is 1, and 0 means the default.
	// +optional
	// +default=1
	// +k8s:validation:minimum=0
	MaxSkew int32 `json:"maxSkew,omitempty"`
	// whenUnsatisfiable defines what happens to a cluster that would exceed maxSkew. With ScheduleAnyway (the default), it is selected after the
	// other clusters. With DoNotSchedule, it is not selected.
	// +optional
	// +default="ScheduleAnyway"
	WhenUnsatisfiable UnsatisfiableMaxSkewAction `json:"whenUnsatisfiable,omitempty"`
}

// TopologyKeyType is the type of a topology key.
// +enum
type TopologyKeyType string

const (
	// TopologyKeyTypeLabel is the type of keys of labels.
	TopologyKeyTypeLabel TopologyKeyType = "Label"
	// TopologyKeyTypeClaim is the type of names of claims.
	TopologyKeyTypeClaim TopologyKeyType = "Claim"
)

// UnsatisfiableMaxSkewAction defines what happens to a cluster that would exceed the maximum skew.
// +enum
type UnsatisfiableMaxSkewAction string

const (
	// DoNotSchedule does not select the cluster.
	DoNotSchedule UnsatisfiableMaxSkewAction = "DoNotSchedule"
	// ScheduleAnyway selects the cluster after the clusters that satisfy the constraint.
	ScheduleAnyway UnsatisfiableMaxSkewAction = "ScheduleAnyway"
)

// Toleration makes clusters with a taint eligible. It matches a taint by key, operator, value and effect together.
type Toleration struct {
	// key is the key of the tolerated taints, at most 316 characters. The default matches all keys, and requires the operator Exists.
	// +optional
	// +k8s:validation:maxLength=316
	// +k8s:validation:pattern="^(([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]))?$"
	Key string `json:"key,omitempty"`
	// operator is Equal (the default) or Exists. With Equal, the value of the taint must equal value. With Exists, the taint can have any value, and
	// value must be empty.
	// +optional
	// +default="Equal"
	Operator TolerationOperator `json:"operator,omitempty"`
	// value is the value of the tolerated taints, at most 1024 characters. Used only if operator is Equal.
	// +optional
	// +k8s:validation:maxLength=1024
	Value string `json:"value,omitempty"`
	// effect is the effect of the tolerated taints: NoSelect, PreferNoSelect or NoSelectIfNew. The default matches all effects.
	// +optional
	Effect v1.TaintEffect `json:"effect,omitempty"`
	// tolerationSeconds is the time for which a taint is tolerated, in seconds since its timeAdded: 0 or more. By default, the taint is tolerated
	// forever.
	// +optional
	// +k8s:validation:minimum=0
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// TolerationOperator defines how the value of a taint is compared.
// +enum
type TolerationOperator string

const (
	// TolerationOpExists matches all values.
	TolerationOpExists TolerationOperator = "Exists"
	// TolerationOpEqual matches the value of the toleration.
	TolerationOpEqual TolerationOperator = "Equal"
)

// DecisionStrategy defines how the selected clusters are divided.
type DecisionStrategy struct {
	// groupStrategy defines how the selected clusters are divided into groups. Rollouts proceed by group.
	// +optional
	GroupStrategy GroupStrategy `json:"groupStrategy,omitempty"`
}

// GroupStrategy defines how the selected clusters are divided into groups.
type GroupStrategy struct {
	// decisionGroups are groups with names, at most 128. In this order, each group contains the clusters that it selects and that no group before it
	// contains. The remaining clusters are in groups without names, after these.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	DecisionGroups []DecisionGroup `json:"decisionGroups,omitempty"`
	// clustersPerDecisionGroup is the maximum number of clusters in a group: a number, 1 or more, or a percentage of the selected clusters from "1%"
	// to "100%", rounded up. A larger group is divided into several groups with the same name. The default is "100%", and 0 means the default.
	// +optional
	ClustersPerDecisionGroup intstr.IntOrString `json:"clustersPerDecisionGroup,omitempty"`
}

// DecisionGroup is a group with a name.
type DecisionGroup struct {
	// groupName is the name of the group, 2 to 63 characters. It is the value of the label cluster.open-cluster-management.io/decision-group-name of
	// the PlacementDecisions of the group. Required.
	// +required
	// +k8s:validation:minLength=2
	// +k8s:validation:maxLength=63
	// +k8s:validation:pattern="^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$"
	GroupName string `json:"groupName,omitempty"`
	// groupClusterSelector selects the clusters of the group from the selected clusters of the placement.
	// +optional
	ClusterSelector GroupClusterSelector `json:"groupClusterSelector,omitempty"`
}

// GroupClusterSelector selects the clusters that match both of its fields. An empty selector selects all clusters.
type GroupClusterSelector struct {
	// labelSelector selects clusters by their labels, with at most 128 match labels and 128 match expressions.
	// +optional
	LabelSelector metav1.LabelSelector `json:"labelSelector,omitempty"`
	// claimSelector selects clusters by status.clusterClaims.
	// +optional
	ClaimSelector ClusterClaimSelector `json:"claimSelector,omitempty"`
}
