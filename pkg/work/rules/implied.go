// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/work/feedback"
	"github.com/clusterhub/clusterhub/pkg/work/manifestconfig"
)

// progress are the rules by which a rollout waits for an object.
var progress = []workv1.ConditionRule{
	{Type: workv1.WellKnownConditionsType, Condition: workv1.ManifestProgressing},
	{Type: workv1.WellKnownConditionsType, Condition: workv1.ManifestDegraded},
}

// Of returns the rules for an object. If its well-known status is fed back, they include its progress, unless the work itself defines Progressing and
// Degraded: the numbers alone may be those of the previous spec, and those of a new Deployment are all zero, so that a rollout that relied on them
// would continue too early.
func Of(kind schema.GroupVersionKind, config manifestconfig.Settings, options []workv1.ManifestConfigOption) []workv1.ConditionRule {
	known := feedback.IsWellKnown(kind) && slices.ContainsFunc(config.FeedbackRules, func(r workv1.FeedbackRule) bool {
		return r.Type == workv1.WellKnownStatusType
	})
	if !known || slices.ContainsFunc(options, saysProgress) {
		return config.ConditionRules
	}
	return slices.Concat(config.ConditionRules, progress)
}

func saysProgress(option workv1.ManifestConfigOption) bool {
	return slices.ContainsFunc(option.ConditionRules, func(r workv1.ConditionRule) bool {
		return r.Condition == workv1.ManifestProgressing || r.Condition == workv1.ManifestDegraded
	})
}
