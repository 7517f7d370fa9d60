// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/work/manifestconfig"
)

func TestOf_FeedbackReportsProgress(t *testing.T) {
	kindOf := func(kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}
	}
	wellKnown := []workv1.FeedbackRule{{Type: workv1.JSONPathsType}, {Type: workv1.WellKnownStatusType}}
	own := func(condition string) []workv1.ConditionRule { return []workv1.ConditionRule{{Condition: condition}} }
	for name, test := range map[string]struct {
		kind     string
		feedback []workv1.FeedbackRule
		rules    []workv1.ConditionRule
		other    []workv1.ConditionRule
		want     string
	}{
		"well-known status":        {kind: "Deployment", feedback: wellKnown, want: "Progressing Degraded "},
		"with another rule":        {kind: "Deployment", feedback: wellKnown, rules: own("Complete"), want: "Complete Progressing Degraded "},
		"with a rule for it":       {kind: "Deployment", feedback: wellKnown, rules: own("Progressing"), want: "Progressing "},
		"with a rule for another":  {kind: "Deployment", feedback: wellKnown, other: own("Degraded")},
		"no feedback":              {kind: "Deployment"},
		"other feedback":           {kind: "Deployment", feedback: wellKnown[:1]},
		"a kind that is not known": {kind: "StatefulSet", feedback: wellKnown, rules: own("Complete"), want: "Complete "},
	} {
		config := manifestconfig.Settings{FeedbackRules: test.feedback, ConditionRules: test.rules}
		got := ""
		for _, r := range Of(kindOf(test.kind), config, []workv1.ManifestConfigOption{{ConditionRules: test.rules}, {ConditionRules: test.other}}) {
			got += r.Condition + " "
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
