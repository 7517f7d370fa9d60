// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rulecheck

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/work/jsonpath"
)

// validatePaths returns an error for the first new path of a feedback rule that is not a JSONPath.
func validatePaths(spec, old *work.ManifestWorkSpec, path *field.Path) field.ErrorList {
	known := sets.New[string]()
	for text := range feedbackPaths(old, path) {
		known.Insert(text)
	}
	for text, at := range feedbackPaths(spec, path) {
		if known.Has(text) {
			continue
		}
		known.Insert(text)
		var syntax *jsonpath.SyntaxError
		if _, err := jsonpath.Parse(text); errors.As(err, &syntax) {
			return field.ErrorList{field.Invalid(at, text, "must be a path such as .status.phase: "+err.Error())}
		}
	}
	return nil
}

// warnOfPaths returns warnings about paths of feedback rules that agents of this version do not evaluate.
func warnOfPaths(spec *work.ManifestWorkSpec, path *field.Path) (warnings []string) {
	known := sets.New[string]()
	for text, at := range feedbackPaths(spec, path) {
		if known.Has(text) {
			continue
		}
		known.Insert(text)
		if _, err := jsonpath.Parse(text); err != nil {
			warnings = append(warnings, fmt.Sprintf("%s: %v: an agent that does not know it reports an error instead of the value", at, err))
		}
		if len(warnings) == maxWarnings {
			break
		}
	}
	return warnings
}

// feedbackPaths yields the paths of feedback rules, and where they are.
func feedbackPaths(spec *work.ManifestWorkSpec, path *field.Path) func(yield func(string, *field.Path) bool) {
	return func(yield func(string, *field.Path) bool) {
		for i := range spec.ManifestConfigs {
			for j := range spec.ManifestConfigs[i].FeedbackRules {
				rule := &spec.ManifestConfigs[i].FeedbackRules[j]
				if rule.Type != work.JSONPathsType {
					continue
				}
				at := path.Child("manifestConfigs").Index(i).Child("feedbackRules").Index(j).Child("jsonPaths")
				for k := range rule.JsonPaths {
					if !yield(rule.JsonPaths[k].Path, at.Index(k).Child("path")) {
						return
					}
				}
			}
		}
	}
}
