// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rulecheck

import (
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

// feedback returns a spec with one rule with these paths.
func feedback(paths ...string) *work.ManifestWorkSpec {
	rule := work.FeedbackRule{Type: work.JSONPathsType}
	for _, path := range paths {
		rule.JsonPaths = append(rule.JsonPaths, work.JsonPath{Name: "v", Path: path})
	}
	return &work.ManifestWorkSpec{ManifestConfigs: []work.ManifestConfigOption{{FeedbackRules: []work.FeedbackRule{rule}}}}
}

func TestValidate_FeedbackPaths(t *testing.T) {
	const at = "spec.manifestConfigs[0].feedbackRules[0].jsonPaths[0].path"
	for path, want := range map[string]struct{ fault, warning string }{
		".status.phase": {},
		`.status.conditions[?(@.type=="Ready")].status`: {},
		".status.list[0,2]":                             {},
		".status[":                                      {fault: "unterminated array"},
		".status.conditions[?(@.type==]":                {fault: "unterminated"},
		"status.phase":                                  {warning: `got the word "status"`},
		".a}{.b":                                        {warning: "got several"},
		"range .items[*]":                               {warning: "range"},
	} {
		of := feedback(path)
		errs, warnings := Validate(nil, of, none, spec), Warnings(of, spec)
		if (want.fault != "") != (len(errs) == 1) || len(errs) == 1 && (errs[0].Field != at || !strings.Contains(errs[0].Detail, want.fault)) {
			t.Errorf("%s: %v", path, errs)
		}
		if want.warning != "" && (len(warnings) != 1 || !strings.HasPrefix(warnings[0], at) || !strings.Contains(warnings[0], want.warning)) ||
			want.warning == "" && want.fault == "" && len(warnings) > 0 {
			t.Errorf("%s: the warnings are %q", path, warnings)
		}
		// A stored path stays valid, wherever it is.
		if errs := Validate(nil, feedback(".new", path), of, spec); len(errs) > 0 {
			t.Errorf("%s, stored: %v", path, errs)
		}
	}
}
