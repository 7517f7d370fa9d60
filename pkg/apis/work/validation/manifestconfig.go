// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

var (
	feedbackTypes    = []work.FeedBackType{work.WellKnownStatusType, work.JSONPathsType}
	scrapeTypes      = []work.FeedbackScrapeType{work.FeedbackPollType, work.FeedbackWatchType}
	ruleTypes        = []work.ConditionRuleType{work.WellKnownConditionsType, work.CelConditionExpressionsType}
	updateTypes      = []work.UpdateStrategyType{work.UpdateStrategyTypeUpdate, work.UpdateStrategyTypeReplace, work.UpdateStrategyTypeCreateOnly, work.UpdateStrategyTypeServerSideApply, work.UpdateStrategyTypeReadOnly}
	adoptionPolicies = []work.AdoptionPolicy{work.AdoptAlways, work.AdoptIfNoDiff, work.AdoptNever}
	ignoreConditions = []work.IgnoreFieldsCondition{work.IgnoreFieldsConditionOnSpokePresent, work.IgnoreFieldsConditionOnSpokeChange}
)

func validateManifestConfigs(configs []work.ManifestConfigOption, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range configs {
		c, at := &configs[i], path.Index(i)
		errs = append(errs, validateFeedbackRules(c.FeedbackRules, at.Child("feedbackRules"))...)
		errs = append(errs, bounds.OneOf(at.Child("feedbackScrapeType"), c.FeedbackScrapeType, scrapeTypes)...)
		errs = append(errs, validateUpdateStrategy(c.UpdateStrategy, at.Child("updateStrategy"))...)
		errs = append(errs, validateConditionRules(c.ConditionRules, at.Child("conditionRules"))...)
		if c.Adoption != "" {
			errs = append(errs, bounds.OneOf(at.Child("adoption"), c.Adoption, adoptionPolicies)...)
		}
		if len(errs) > enoughFaults {
			break
		}
	}
	return errs
}

func validateFeedbackRules(rules []work.FeedbackRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		errs = append(errs, bounds.OneOf(path.Index(i).Child("type"), rules[i].Type, feedbackTypes)...)
	}
	return errs
}

func validateUpdateStrategy(s *work.UpdateStrategy, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := bounds.OneOf(path.Child("type"), s.Type, updateTypes)
	apply := s.ServerSideApply
	if apply == nil {
		return errs
	}
	at := path.Child("serverSideApply")
	if !strings.HasPrefix(apply.FieldManager, work.DefaultFieldManager) {
		errs = append(errs, field.Invalid(at.Child("fieldManager"), apply.FieldManager, "must begin with "+work.DefaultFieldManager))
	}
	for i := range apply.IgnoreFields {
		f, ignored := &apply.IgnoreFields[i], at.Child("ignoreFields").Index(i)
		errs = append(errs, bounds.OneOf(ignored.Child("condition"), f.Condition, ignoreConditions)...)
		if len(f.JSONPaths)+len(f.JSONPointers)+len(f.JQPathExpressions) == 0 {
			errs = append(errs, field.Required(ignored.Child("jsonPaths"), "must name a field, unless jsonPointers or jqPathExpressions do"))
		}
	}
	return errs
}

func validateConditionRules(rules []work.ConditionRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		errs = append(errs, bounds.OneOf(path.Index(i).Child("type"), rules[i].Type, ruleTypes)...)
	}
	return errs
}
