// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterhub/clusterhub/pkg/apis/duration"
)

// RolloutStrategy defines how changes are rolled out to the clusters of a placement.
type RolloutStrategy struct {
	// type is All, Progressive or ProgressivePerGroup. With All (the default), all clusters are updated at once. With Progressive, a limited number
	// of clusters is updated at a time. With ProgressivePerGroup, the decision groups of the placement are updated one after the other. The field of
	// the same name configures the type.
	Type RolloutType
	// all configures the type All.
	All *RolloutAll
	// progressive configures the type Progressive.
	Progressive *RolloutProgressive
	// progressivePerGroup configures the type ProgressivePerGroup.
	ProgressivePerGroup *RolloutProgressivePerGroup
}

// RolloutType is a way to roll out changes.
type RolloutType string

const (
	// All updates all clusters at once.
	All RolloutType = "All"
	// Progressive updates a limited number of clusters at a time.
	Progressive RolloutType = "Progressive"
	// ProgressivePerGroup updates one decision group after the other.
	ProgressivePerGroup RolloutType = "ProgressivePerGroup"
)

// RolloutAll configures a rollout to all clusters at once.
type RolloutAll struct {
	RolloutConfig
}

// RolloutProgressive configures a rollout to a limited number of clusters at a time.
type RolloutProgressive struct {
	RolloutConfig
	MandatoryDecisionGroups
	// maxConcurrency is the maximum number of clusters that are updated at a time: a number, 1 or more, or a percentage of the clusters from "1%" to
	// "100%", rounded up. The default is all clusters, and 0 means the default.
	MaxConcurrency intstr.IntOrString
}

// RolloutProgressivePerGroup configures a rollout to one decision group after the other.
type RolloutProgressivePerGroup struct {
	RolloutConfig
	MandatoryDecisionGroups
}

// RolloutConfig defines when a cluster is updated successfully, and how many clusters may fail.
type RolloutConfig struct {
	// minSuccessTime is the time for which a cluster must be successful before the rollout continues, in hours, minutes and seconds, such as 90m or
	// 1h30m. The default is 0. The type All ignores it.
	MinSuccessTime duration.Duration
	// progressDeadline is the time after which a cluster that is not successful counts as failed, in hours, minutes and seconds, such as 30m or
	// 1h30m. The default is None, which means never.
	ProgressDeadline string
	// maxFailures is the maximum number of clusters that may fail; the rollout stops if more do. It is a number, 0 or more, or a percentage from "0%"
	// to "100%", rounded up, of all clusters, or of the clusters of the group. The default is 0. The type All ignores it.
	MaxFailures intstr.IntOrString
}

// MandatoryDecisionGroups defines the groups that are updated first.
type MandatoryDecisionGroups struct {
	// mandatoryDecisionGroups are decision groups that are updated before all others, and in which no cluster may fail: at most 64.
	MandatoryDecisionGroups []MandatoryDecisionGroup
}

// MandatoryDecisionGroup identifies a decision group of the placement, by its name, or by its index if it has no name.
type MandatoryDecisionGroup struct {
	// groupName is the name of the group, at most 63 characters.
	GroupName string
	// groupIndex is the index of the group, starting at 0.
	GroupIndex int32
}
