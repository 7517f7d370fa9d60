// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterhub/clusterhub/pkg/apis/duration"
)

// RolloutStrategy defines how changes are rolled out to the clusters of a placement.
type RolloutStrategy struct {
	// type is All, Progressive or ProgressivePerGroup. With All (the default), all clusters are updated at once. With Progressive, a limited number
	// of clusters is updated at a time. With ProgressivePerGroup, the decision groups of the placement are updated one after the other. The field of
	// the same name configures the type.
	// +optional
	// +default="All"
	Type RolloutType `json:"type,omitempty"`
	// all configures the type All.
	// +optional
	All *RolloutAll `json:"all,omitempty"`
	// progressive configures the type Progressive.
	// +optional
	Progressive *RolloutProgressive `json:"progressive,omitempty"`
	// progressivePerGroup configures the type ProgressivePerGroup.
	// +optional
	ProgressivePerGroup *RolloutProgressivePerGroup `json:"progressivePerGroup,omitempty"`
}

// RolloutType is a way to roll out changes.
// +enum
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
	RolloutConfig `json:",inline"`
}

// RolloutProgressive configures a rollout to a limited number of clusters at a time.
type RolloutProgressive struct {
	RolloutConfig           `json:",inline"`
	MandatoryDecisionGroups `json:",inline"`
	// maxConcurrency is the maximum number of clusters that are updated at a time: a number, 1 or more, or a percentage of the clusters from "1%" to
	// "100%", rounded up. The default is all clusters, and 0 means the default.
	// +optional
	MaxConcurrency intstr.IntOrString `json:"maxConcurrency,omitempty"`
}

// RolloutProgressivePerGroup configures a rollout to one decision group after the other.
type RolloutProgressivePerGroup struct {
	RolloutConfig           `json:",inline"`
	MandatoryDecisionGroups `json:",inline"`
}

// RolloutConfig defines when a cluster is updated successfully, and how many clusters may fail.
type RolloutConfig struct {
	// minSuccessTime is the time for which a cluster must be successful before the rollout continues, in hours, minutes and seconds, such as 90m or
	// 1h30m. The default is 0. The type All ignores it.
	// +optional
	MinSuccessTime duration.Duration `json:"minSuccessTime,omitempty"`
	// progressDeadline is the time after which a cluster that is not successful counts as failed, in hours, minutes and seconds, such as 30m or
	// 1h30m. The default is None, which means never.
	// +optional
	// +default="None"
	// +k8s:validation:maxLength=16
	// +k8s:validation:pattern="^(([0-9]+[hms])+|None)$"
	ProgressDeadline string `json:"progressDeadline,omitempty"`
	// maxFailures is the maximum number of clusters that may fail; the rollout stops if more do. It is a number, 0 or more, or a percentage from "0%"
	// to "100%", rounded up, of all clusters, or of the clusters of the group. The default is 0. The type All ignores it.
	// +optional
	MaxFailures intstr.IntOrString `json:"maxFailures,omitempty"`
}

// MandatoryDecisionGroups defines the groups that are updated first.
type MandatoryDecisionGroups struct {
	// mandatoryDecisionGroups are decision groups that are updated before all others, and in which no cluster may fail: at most 64.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	MandatoryDecisionGroups []MandatoryDecisionGroup `json:"mandatoryDecisionGroups,omitempty"`
}

// MandatoryDecisionGroup identifies a decision group of the placement, by its name, or by its index if it has no name.
type MandatoryDecisionGroup struct {
	// groupName is the name of the group, at most 63 characters.
	// +optional
	// +k8s:validation:maxLength=63
	GroupName string `json:"groupName,omitempty"`
	// groupIndex is the index of the group, starting at 0.
	// +optional
	// +k8s:validation:minimum=0
	GroupIndex int32 `json:"groupIndex,omitempty"`
}
