// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

// SpreadPolicy says how the chosen clusters are spread over topologies.
type SpreadPolicy struct {
	// spreadConstraints are the constraints on how clusters spread, the most important first: at most 8.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=8
	SpreadConstraints []SpreadConstraintsTerm `json:"spreadConstraints,omitempty"`
}

// SpreadConstraintsTerm bounds how unevenly the chosen clusters may be spread over the values of one label or claim.
type SpreadConstraintsTerm struct {
	// topologyKey is a label's key or a claim's name, 1 to 316 characters. Clusters with the same value are in the same
	// topology.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=316
	// +k8s:validation:pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
	TopologyKey string `json:"topologyKey"`
	// topologyKeyType says what topologyKey is: Label or Claim. It is required.
	TopologyKeyType TopologyKeyType `json:"topologyKeyType"`
	// maxSkew is how many more clusters a topology may have than the one with the fewest, 1 or more. The default is 1, and
	// 0 means the default.
	// +optional
	// +default=1
	// +k8s:validation:minimum=0
	MaxSkew int32 `json:"maxSkew,omitempty"`
	// whenUnsatisfiable says what happens to a cluster that would make the difference greater. ScheduleAnyway (the
	// default): it is taken after the others. DoNotSchedule: it is not taken.
	// +optional
	// +default="ScheduleAnyway"
	WhenUnsatisfiable UnsatisfiableMaxSkewAction `json:"whenUnsatisfiable,omitempty"`
}

// TopologyKeyType is the type of the key of a topology.
// +enum
type TopologyKeyType string

const (
	// TopologyKeyTypeLabel is the key of a label.
	TopologyKeyTypeLabel TopologyKeyType = "Label"
	// TopologyKeyTypeClaim is the name of a claim.
	TopologyKeyTypeClaim TopologyKeyType = "Claim"
)

// UnsatisfiableMaxSkewAction is the action for a cluster that would exceed the maximum skew.
// +enum
type UnsatisfiableMaxSkewAction string

const (
	// DoNotSchedule leaves the cluster out.
	DoNotSchedule UnsatisfiableMaxSkewAction = "DoNotSchedule"
	// ScheduleAnyway takes the cluster after those that fit.
	ScheduleAnyway UnsatisfiableMaxSkewAction = "ScheduleAnyway"
)

// Toleration lets clusters with a taint pass. It matches a taint by key, operator, value and effect together.
type Toleration struct {
	// key is the key of the taints that are tolerated, at most 316 characters. The default is every key, which needs the
	// operator Exists.
	// +optional
	// +k8s:validation:maxLength=316
	// +k8s:validation:pattern="^(([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]))?$"
	Key string `json:"key,omitempty"`
	// operator is Equal (the default) or Exists. Equal: the taint has the value in value. Exists: it has any value, and
	// value is empty.
	// +optional
	// +default="Equal"
	Operator TolerationOperator `json:"operator,omitempty"`
	// value is the value of the taints that are tolerated, at most 1024 characters. Only for operator Equal.
	// +optional
	// +k8s:validation:maxLength=1024
	Value string `json:"value,omitempty"`
	// effect is the effect of the taints that are tolerated: NoSelect, PreferNoSelect or NoSelectIfNew. The default is
	// every effect.
	// +optional
	Effect v1.TaintEffect `json:"effect,omitempty"`
	// tolerationSeconds is how long a taint is tolerated, in seconds from its timeAdded on: 0 or more. The default is for
	// ever.
	// +optional
	// +k8s:validation:minimum=0
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// TolerationOperator says how the value of a taint is compared.
// +enum
type TolerationOperator string

const (
	// TolerationOpExists matches every value.
	TolerationOpExists TolerationOperator = "Exists"
	// TolerationOpEqual matches the value of the toleration.
	TolerationOpEqual TolerationOperator = "Equal"
)

// DecisionStrategy says how the chosen clusters are divided.
type DecisionStrategy struct {
	// groupStrategy says how the chosen clusters are divided into groups. Rollouts go group by group.
	// +optional
	GroupStrategy GroupStrategy `json:"groupStrategy,omitempty"`
}

// GroupStrategy says how the chosen clusters are divided into groups.
type GroupStrategy struct {
	// decisionGroups are groups with a name, at most 128. Each takes, in this order, the clusters that it selects and no
	// group before it has taken. The clusters that none selects are in groups without a name, after these.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	DecisionGroups []DecisionGroup `json:"decisionGroups,omitempty"`
	// clustersPerDecisionGroup is the most clusters that a group has: a number, 1 or more, or a percentage of the chosen
	// clusters from "1%" to "100%", rounded up. A group that would have more is divided, with one name for all of its
	// parts. The default is "100%", and 0 means the default.
	// +optional
	ClustersPerDecisionGroup intstr.IntOrString `json:"clustersPerDecisionGroup,omitempty"`
}

// DecisionGroup is a group with a name.
type DecisionGroup struct {
	// groupName is the name of the group, 2 to 63 characters. It is the value of the label
	// cluster.open-cluster-management.io/decision-group-name of its PlacementDecisions. It is required.
	// +required
	// +k8s:validation:minLength=2
	// +k8s:validation:maxLength=63
	// +k8s:validation:pattern="^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$"
	GroupName string `json:"groupName,omitempty"`
	// groupClusterSelector selects the clusters of the group from those that were chosen.
	// +optional
	ClusterSelector GroupClusterSelector `json:"groupClusterSelector,omitempty"`
}

// GroupClusterSelector selects clusters that match both of its parts. An empty one selects every cluster.
type GroupClusterSelector struct {
	// labelSelector selects clusters by their labels, with at most 128 match labels and 128 match expressions.
	// +optional
	LabelSelector metav1.LabelSelector `json:"labelSelector,omitempty"`
	// claimSelector selects clusters by status.clusterClaims.
	// +optional
	ClaimSelector ClusterClaimSelector `json:"claimSelector,omitempty"`
}
