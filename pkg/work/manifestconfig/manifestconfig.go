// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifestconfig determines the manifestConfigs of a work that apply to an object.
package manifestconfig

import (
	"strings"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// Settings is the configuration of one object. It shares lists with the work, which must not be changed.
type Settings struct {
	ConditionRules []workv1.ConditionRule
	FeedbackRules  []workv1.FeedbackRule
	// UpdateStrategy always has a type.
	UpdateStrategy     workv1.UpdateStrategy
	FeedbackScrapeType workv1.FeedbackScrapeType
	// Adoption may be empty.
	Adoption workv1.AdoptionPolicy
}

// For determines each part separately: it is set by the first option that matches the object and has the part. Only the scrape type is set by the
// last option that matches, as every option has one by default.
func For(object *workv1.ManifestResourceMeta, options []workv1.ManifestConfigOption) Settings {
	c := Settings{FeedbackScrapeType: workv1.FeedbackPollType}
	var strategy *workv1.UpdateStrategy
	for i := range options {
		option := &options[i]
		if !Fits(&option.ResourceIdentifier, object) {
			continue
		}
		if len(c.ConditionRules) == 0 {
			c.ConditionRules = option.ConditionRules
		}
		if len(c.FeedbackRules) == 0 {
			c.FeedbackRules = option.FeedbackRules
		}
		if strategy == nil {
			strategy = option.UpdateStrategy
		}
		if c.Adoption == "" {
			c.Adoption = option.Adoption
		}
		c.FeedbackScrapeType = option.FeedbackScrapeType
	}
	if strategy != nil {
		c.UpdateStrategy = *strategy
	}
	if c.UpdateStrategy.Type == "" {
		c.UpdateStrategy.Type = workv1.UpdateStrategyTypeUpdate
	}
	if c.FeedbackScrapeType == "" {
		c.FeedbackScrapeType = workv1.FeedbackPollType
	}
	return c
}

// Fits reports whether an identifier matches an object. In namespace and name, * stands for any number of characters; so * also matches the empty
// namespace.
func Fits(identifier *workv1.ResourceIdentifier, object *workv1.ManifestResourceMeta) bool {
	return identifier.Group == object.Group && identifier.Resource == object.Resource &&
		fits(identifier.Namespace, object.Namespace) && fits(identifier.Name, object.Name)
}

func fits(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, last)
}
