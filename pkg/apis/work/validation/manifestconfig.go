// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
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
	errs := bounds.Count(path, len(configs), 0, maxManifestConfigs)
	for i := range configs {
		c, at := &configs[i], path.Index(i)
		errs = append(errs, validateIdentifier(&c.ResourceIdentifier, at.Child("resourceIdentifier"))...)
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
	errs := bounds.Count(path, len(rules), 0, maxFeedbackRules)
	for i := range rules {
		at := path.Index(i)
		errs = append(errs, bounds.OneOf(at.Child("type"), rules[i].Type, feedbackTypes)...)
		paths := at.Child("jsonPaths")
		errs = append(errs, bounds.Count(paths, len(rules[i].JsonPaths), 0, maxJSONPaths)...)
		names := sets.New[string]()
		for j := range rules[i].JsonPaths {
			p := &rules[i].JsonPaths[j]
			errs = append(errs, once(names, p.Name, paths.Index(j).Child("name"))...)
			errs = append(errs, bounds.Filled(paths.Index(j).Child("name"), p.Name, maxName)...)
			errs = append(errs, bounds.Length(paths.Index(j).Child("version"), p.Version, 0, maxVersion)...)
			errs = append(errs, bounds.Filled(paths.Index(j).Child("path"), p.Path, maxPath)...)
		}
	}
	return errs
}

// once refuses the key of an entry of a list that an entry before has.
func once[T ~string](seen sets.Set[T], key T, path *field.Path) field.ErrorList {
	if seen.Has(key) {
		return field.ErrorList{field.Duplicate(path, key)}
	}
	seen.Insert(key)
	return nil
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
	manager := bounds.Filled(at.Child("fieldManager"), apply.FieldManager, maxFieldManager)
	if len(manager) == 0 && !strings.HasPrefix(apply.FieldManager, work.DefaultFieldManager) {
		manager = append(manager, field.Invalid(at.Child("fieldManager"), apply.FieldManager, "must begin with "+work.DefaultFieldManager))
	}
	errs = append(errs, manager...)
	ignored := at.Child("ignoreFields")
	errs = append(errs, bounds.Count(ignored, len(apply.IgnoreFields), 0, maxIgnoreFields)...)
	conditions := sets.New[work.IgnoreFieldsCondition]()
	for i := range apply.IgnoreFields {
		f := &apply.IgnoreFields[i]
		errs = append(errs, once(conditions, f.Condition, ignored.Index(i).Child("condition"))...)
		errs = append(errs, bounds.OneOf(ignored.Index(i).Child("condition"), f.Condition, ignoreConditions)...)
		errs = append(errs, validateIgnored(f, ignored.Index(i))...)
	}
	return errs
}

func validateIgnored(f *work.IgnoreField, path *field.Path) field.ErrorList {
	if len(f.JSONPaths)+len(f.JSONPointers)+len(f.JQPathExpressions) == 0 {
		return field.ErrorList{field.Required(path.Child("jsonPaths"), "must name a field, unless jsonPointers or jqPathExpressions do")}
	}
	var errs field.ErrorList
	for _, list := range []struct {
		name   string
		values []string
	}{{"jsonPaths", f.JSONPaths}, {"jsonPointers", f.JSONPointers}, {"jqPathExpressions", f.JQPathExpressions}} {
		errs = append(errs, validateTexts(list.values, maxIgnoredPaths, maxPath, path.Child(list.name))...)
	}
	return errs
}

func validateTexts(values []string, most, longest int, path *field.Path) field.ErrorList {
	errs := bounds.Count(path, len(values), 0, most)
	for i, value := range values {
		errs = append(errs, bounds.Filled(path.Index(i), value, longest)...)
	}
	return errs
}

func validateConditionRules(rules []work.ConditionRule, path *field.Path) field.ErrorList {
	errs := bounds.Count(path, len(rules), 0, maxConditionRules)
	conditions := sets.New[string]()
	for i := range rules {
		r, at := &rules[i], path.Index(i)
		errs = append(errs, once(conditions, r.Condition, at.Child("condition"))...)
		if r.Condition == "" && r.Type == work.CelConditionExpressionsType {
			errs = append(errs, field.Required(at.Child("condition"), "Condition is required for CEL rules"))
		} else {
			errs = append(errs, bounds.Filled(at.Child("condition"), r.Condition, maxConditionType)...)
		}
		errs = append(errs, bounds.OneOf(at.Child("type"), r.Type, ruleTypes)...)
		errs = append(errs, validateTexts(r.CelExpressions, maxExpressions, maxExpression, at.Child("celExpressions"))...)
		errs = append(errs, bounds.Length(at.Child("message"), r.Message, 0, maxMessage)...)
		errs = append(errs, bounds.Length(at.Child("messageExpression"), r.MessageExpression, 0, maxExpression)...)
	}
	return errs
}
