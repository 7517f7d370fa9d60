// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterhub/clusterhub/pkg/apis/duration"
)

// RolloutStrategy says in which steps the clusters of a placement get what was changed.
type RolloutStrategy struct {
	// type is All (the default): all clusters at once. Progressive: some clusters at a time. ProgressivePerGroup: one
	// decision group of the placement after the other. The field of that name says more.
	// +optional
	// +default="All"
	Type RolloutType `json:"type,omitempty"`
	// all is for the type All.
	// +optional
	All *RolloutAll `json:"all,omitempty"`
	// progressive is for the type Progressive.
	// +optional
	Progressive *RolloutProgressive `json:"progressive,omitempty"`
	// progressivePerGroup is for the type ProgressivePerGroup.
	// +optional
	ProgressivePerGroup *RolloutProgressivePerGroup `json:"progressivePerGroup,omitempty"`
}

// RolloutType is a way to roll out.
// +enum
type RolloutType string

const (
	// All is all clusters at once.
	All RolloutType = "All"
	// Progressive is some clusters at a time.
	Progressive RolloutType = "Progressive"
	// ProgressivePerGroup is one decision group after the other.
	ProgressivePerGroup RolloutType = "ProgressivePerGroup"
)

// RolloutAll is how all clusters get it at once.
type RolloutAll struct {
	RolloutConfig `json:",inline"`
}

// RolloutProgressive is how some clusters at a time get it.
type RolloutProgressive struct {
	RolloutConfig           `json:",inline"`
	MandatoryDecisionGroups `json:",inline"`
	// maxConcurrency is how many clusters are on the way at a time: a number, 1 or more, or a percentage of the clusters
	// from "1%" to "100%", rounded up. The default is all clusters, and 0 means the default.
	// +optional
	MaxConcurrency intstr.IntOrString `json:"maxConcurrency,omitempty"`
}

// RolloutProgressivePerGroup is how one decision group after the other gets it.
type RolloutProgressivePerGroup struct {
	RolloutConfig           `json:",inline"`
	MandatoryDecisionGroups `json:",inline"`
}

// RolloutConfig says when a cluster is done, and how many may fail.
type RolloutConfig struct {
	// minSuccessTime is how long a cluster has to be well before it is done: hours, minutes and seconds, such as 90m or
	// 1h30m. The default is 0.
	// +optional
	MinSuccessTime duration.Duration `json:"minSuccessTime,omitempty"`
	// progressDeadline is after which time a cluster that is not done counts as failed: hours, minutes and seconds, such as
	// 30m or 1h30m. None (the default) is never.
	// +optional
	// +default="None"
	// +k8s:validation:maxLength=16
	// +k8s:validation:pattern="^(([0-9]+[hms])+|None)$"
	ProgressDeadline string `json:"progressDeadline,omitempty"`
	// maxFailures is how many clusters may fail before the rollout stops: a number, 0 or more, or a percentage from "0%"
	// to "100%", rounded up, of all clusters, or of those of the group. The default is 0.
	// +optional
	MaxFailures intstr.IntOrString `json:"maxFailures,omitempty"`
}

// MandatoryDecisionGroups has the groups that come first.
type MandatoryDecisionGroups struct {
	// mandatoryDecisionGroups are decision groups that get it before all others, and in which no cluster may fail: at most
	// 64.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	MandatoryDecisionGroups []MandatoryDecisionGroup `json:"mandatoryDecisionGroups,omitempty"`
}

// MandatoryDecisionGroup names a decision group of the placement, by its name if there is one, or by its index.
type MandatoryDecisionGroup struct {
	// groupName is the name of the group, at most 63 characters.
	// +optional
	// +k8s:validation:maxLength=63
	GroupName string `json:"groupName,omitempty"`
	// groupIndex is the index of the group, from 0 on.
	// +optional
	// +k8s:validation:minimum=0
	GroupIndex int32 `json:"groupIndex,omitempty"`
}
