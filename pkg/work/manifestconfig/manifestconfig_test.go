// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestconfig

import (
	"strings"
	"testing"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

func deployments(namespace, name string) workv1.ResourceIdentifier {
	return workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: namespace, Name: name}
}

func rule(condition string) []workv1.ConditionRule {
	return []workv1.ConditionRule{{Condition: condition}}
}

func feedback(path string) []workv1.FeedbackRule {
	return []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: path}}}}
}

func TestFor(t *testing.T) {
	options := []workv1.ManifestConfigOption{
		{ResourceIdentifier: deployments("other", "d1"), ConditionRules: rule("Other")},
		{ResourceIdentifier: deployments("*", "d*"), FeedbackScrapeType: workv1.FeedbackWatchType},
		{ResourceIdentifier: deployments("n1", "d1"), FeedbackRules: feedback("first"), FeedbackScrapeType: workv1.FeedbackWatchType},
		{ResourceIdentifier: deployments("n1", "*"), ConditionRules: rule("Second"), FeedbackRules: feedback("second"), FeedbackScrapeType: workv1.FeedbackPollType,
			UpdateStrategy: &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly}},
		{ResourceIdentifier: deployments("n1", "d1"), ConditionRules: rule("Third"), FeedbackScrapeType: workv1.FeedbackWatchType,
			UpdateStrategy: &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}},
	}
	object := &workv1.ManifestResourceMeta{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "n1", Name: "d1"}
	got := For(object, options)
	if len(got.ConditionRules) != 1 || got.ConditionRules[0].Condition != "Second" || len(got.FeedbackRules) != 1 || got.FeedbackRules[0].JsonPaths[0].Name != "first" ||
		got.UpdateStrategy.Type != workv1.UpdateStrategyTypeReadOnly || got.FeedbackScrapeType != workv1.FeedbackWatchType {
		t.Errorf("got %+v", got)
	}
	object.Name = "e1"
	if got := For(object, options); got.FeedbackRules[0].JsonPaths[0].Name != "second" || got.FeedbackScrapeType != workv1.FeedbackPollType {
		t.Errorf("e1: got %+v", got)
	}
	object.Resource = "statefulsets"
	for _, options := range [][]workv1.ManifestConfigOption{options, nil} {
		if got := For(object, options); len(got.ConditionRules)+len(got.FeedbackRules) > 0 || got.UpdateStrategy.Type != workv1.UpdateStrategyTypeUpdate ||
			got.FeedbackScrapeType != workv1.FeedbackPollType {
			t.Errorf("nothing fits: got %+v", got)
		}
	}
}

func TestFits(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "", false}, {"a", "a", true}, {"a", "ab", false},
		{"*", "", true}, {"*", "a.b", true}, {"deploy*", "deploy1", true}, {"deploy*", "deplo", false}, {"*-x", "a-x", true}, {"*-x", "-x-", false},
		{"a*a", "a", false}, {"a*a", "aa", true}, {"a*b*c", "a-b-b-c", true}, {"a*b*c", "ac", false}, {"**", "x", true}, {"a**b", "ab", true},
		{"*ab*ab", "abab", true}, {"*ab*ab", "aab", false}, {"a.c", "abc", false}, {"[a]", "a", false}, {"?", "a", false},
	} {
		if got := fits(test.pattern, test.text); got != test.want {
			t.Errorf("%q and %q: %v", test.pattern, test.text, got)
		}
	}
	// With backtracking, this would take forever.
	if fits(strings.Repeat("a*", 126)+"b", strings.Repeat("a", 253)) {
		t.Error("many stars fit")
	}
	pods := deployments("*", "*")
	pods.Resource = "pods"
	if Fits(&pods, &workv1.ManifestResourceMeta{Group: "apps", Resource: "deployments", Name: "a"}) {
		t.Error("another resource fits")
	}
	pods.Resource, pods.Group = "deployments", "*"
	if Fits(&pods, &workv1.ManifestResourceMeta{Group: "apps", Resource: "deployments", Name: "a"}) {
		t.Error("a group is no pattern")
	}
}
