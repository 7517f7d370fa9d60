// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// SpreadPolicy defines how the selected clusters are spread over topologies.
type SpreadPolicy struct {
	// spreadConstraints are the spread constraints, the most important first: at most 8.
	SpreadConstraints []SpreadConstraintsTerm
}

// SpreadConstraintsTerm limits the skew of the selected clusters over the values of a label or claim.
type SpreadConstraintsTerm struct {
	// topologyKey is the key of a label or the name of a claim, 1 to 316 characters.
	TopologyKey string
	// topologyKeyType is the type of topologyKey: Label or Claim.
	TopologyKeyType TopologyKeyType
	// maxSkew is the maximum difference between the numbers of selected clusters in a topology and in the topology with the fewest, 1 or more.
	MaxSkew int32
	// whenUnsatisfiable defines what happens to a cluster that would exceed maxSkew.
	WhenUnsatisfiable UnsatisfiableMaxSkewAction
}

// TopologyKeyType is the type of a topology key.
type TopologyKeyType string

const (
	// TopologyKeyTypeLabel is the type of keys of labels.
	TopologyKeyTypeLabel TopologyKeyType = "Label"
	// TopologyKeyTypeClaim is the type of names of claims.
	TopologyKeyTypeClaim TopologyKeyType = "Claim"
)

// UnsatisfiableMaxSkewAction defines what happens to a cluster that would exceed the maximum skew.
type UnsatisfiableMaxSkewAction string

const (
	// DoNotSchedule does not select the cluster.
	DoNotSchedule UnsatisfiableMaxSkewAction = "DoNotSchedule"
	// ScheduleAnyway selects the cluster after the clusters that satisfy the constraint.
	ScheduleAnyway UnsatisfiableMaxSkewAction = "ScheduleAnyway"
)

// Toleration makes clusters with a taint eligible.
type Toleration struct {
	// key is the key of the tolerated taints, at most 316 characters.
	Key string
	// operator is Equal (the default) or Exists.
	Operator TolerationOperator
	// value is the value of the tolerated taints, at most 1024 characters.
	Value string
	// effect is the effect of the tolerated taints: NoSelect, PreferNoSelect or NoSelectIfNew.
	Effect TaintEffect
	// tolerationSeconds is the time for which a taint is tolerated, in seconds since its timeAdded: 0 or more.
	TolerationSeconds *int64
}

// TolerationOperator defines how the value of a taint is compared.
type TolerationOperator string

const (
	// TolerationOpExists matches all values.
	TolerationOpExists TolerationOperator = "Exists"
	// TolerationOpEqual matches the value of the toleration.
	TolerationOpEqual TolerationOperator = "Equal"
)

// DecisionStrategy defines how the selected clusters are divided.
type DecisionStrategy struct {
	// groupStrategy defines how the selected clusters are divided into groups.
	GroupStrategy GroupStrategy
}

// GroupStrategy defines how the selected clusters are divided into groups.
type GroupStrategy struct {
	// decisionGroups are groups with names, at most 128.
	DecisionGroups []DecisionGroup
	// clustersPerDecisionGroup is the maximum number of clusters in a group: a number, 1 or more, or a percentage of the selected clusters from "1%"
	// to "100%", rounded up.
	ClustersPerDecisionGroup intstr.IntOrString
}

// DecisionGroup is a group with a name.
type DecisionGroup struct {
	// groupName is the name of the group, 2 to 63 characters.
	GroupName string
	// groupClusterSelector selects the clusters of the group from the selected clusters of the placement.
	ClusterSelector GroupClusterSelector
}

// GroupClusterSelector selects the clusters that match both of its fields.
type GroupClusterSelector struct {
	// labelSelector selects clusters by their labels, with at most 128 match labels and 128 match expressions.
	LabelSelector metav1.LabelSelector
	// claimSelector selects clusters by status.clusterClaims.
	ClaimSelector ClusterClaimSelector
}
