// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// SpreadPolicy says how the chosen clusters are spread over topologies.
type SpreadPolicy struct {
	// spreadConstraints are the constraints on how clusters spread, the most important first: at most 8.
	SpreadConstraints []SpreadConstraintsTerm
}

// SpreadConstraintsTerm bounds how unevenly the chosen clusters may be spread over the values of one label or claim.
type SpreadConstraintsTerm struct {
	// topologyKey is a label's key or a claim's name, 1 to 316 characters.
	TopologyKey string
	// topologyKeyType says what topologyKey is: Label or Claim.
	TopologyKeyType TopologyKeyType
	// maxSkew is how many more clusters a topology may have than the one with the fewest, 1 or more.
	MaxSkew int32
	// whenUnsatisfiable says what happens to a cluster that would make the difference greater.
	WhenUnsatisfiable UnsatisfiableMaxSkewAction
}

// TopologyKeyType is the type of the key of a topology.
type TopologyKeyType string

const (
	// TopologyKeyTypeLabel is the key of a label.
	TopologyKeyTypeLabel TopologyKeyType = "Label"
	// TopologyKeyTypeClaim is the name of a claim.
	TopologyKeyTypeClaim TopologyKeyType = "Claim"
)

// UnsatisfiableMaxSkewAction is the action for a cluster that would exceed the maximum skew.
type UnsatisfiableMaxSkewAction string

const (
	// DoNotSchedule leaves the cluster out.
	DoNotSchedule UnsatisfiableMaxSkewAction = "DoNotSchedule"
	// ScheduleAnyway takes the cluster after those that fit.
	ScheduleAnyway UnsatisfiableMaxSkewAction = "ScheduleAnyway"
)

// Toleration lets clusters with a taint pass.
type Toleration struct {
	// key is the key of the taints that are tolerated, at most 316 characters.
	Key string
	// operator is Equal (the default) or Exists.
	Operator TolerationOperator
	// value is the value of the taints that are tolerated, at most 1024 characters.
	Value string
	// effect is the effect of the taints that are tolerated: NoSelect, PreferNoSelect or NoSelectIfNew.
	Effect TaintEffect
	// tolerationSeconds is how long a taint is tolerated, in seconds from its timeAdded on: 0 or more.
	TolerationSeconds *int64
}

// TolerationOperator says how the value of a taint is compared.
type TolerationOperator string

const (
	// TolerationOpExists matches every value.
	TolerationOpExists TolerationOperator = "Exists"
	// TolerationOpEqual matches the value of the toleration.
	TolerationOpEqual TolerationOperator = "Equal"
)

// DecisionStrategy says how the chosen clusters are divided.
type DecisionStrategy struct {
	// groupStrategy says how the chosen clusters are divided into groups.
	GroupStrategy GroupStrategy
}

// GroupStrategy says how the chosen clusters are divided into groups.
type GroupStrategy struct {
	// decisionGroups are groups with a name, at most 128.
	DecisionGroups []DecisionGroup
	// clustersPerDecisionGroup is the most clusters that a group has: a number, 1 or more, or a percentage of the
	// chosen clusters from "1%" to "100%", rounded up.
	ClustersPerDecisionGroup intstr.IntOrString
}

// DecisionGroup is a group with a name.
type DecisionGroup struct {
	// groupName is the name of the group, 2 to 63 characters.
	GroupName string
	// groupClusterSelector selects the clusters of the group from those that were chosen.
	ClusterSelector GroupClusterSelector
}

// GroupClusterSelector selects clusters that match both of its parts.
type GroupClusterSelector struct {
	// labelSelector selects clusters by their labels, with at most 128 match labels and 128 match expressions.
	LabelSelector metav1.LabelSelector
	// claimSelector selects clusters by status.clusterClaims.
	ClaimSelector ClusterClaimSelector
}
