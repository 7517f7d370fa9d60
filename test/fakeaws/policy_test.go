// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"fmt"
	"github.com/clusterhub/clusterhub/test/fakeaws/iampolicy"
	"strings"
	"testing"
)

func TestLike_MatchesAWSWildcards(t *testing.T) {
	for _, tc := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a:b/c", true}, {"a", "a", true}, {"a", "A", false},
		{"a?c", "abc", true}, {"a?c", "ac", false}, {"*:role/ocm-hub-*", "arn:aws:iam::1:role/ocm-hub-1", true},
		{"*:role/ocm-hub-*", "arn:aws:iam::1:role/hub-1", false}, {"a*b*c", "aXbbYc", true}, {"a*b*c", "aXc", false},
		{"*a", "aaab", false}, {"*ab", "aaab", true}, {"a**", "a", true}, {"a[b]", "ab", false},
	} {
		if got := iampolicy.Like(tc.pattern, tc.s); got != tc.want {
			t.Errorf("like(%q, %q) = %v", tc.pattern, tc.s, got)
		}
	}
	// Matching a pattern with many stars must be fast.
	if iampolicy.Like(strings.Repeat("*a", 1000), strings.Repeat("a", 10000)+"b") {
		t.Error("a pattern with many stars matches what ends otherwise")
	}
}

func TestCondition_MatchesAWSDocumentation(t *testing.T) {
	for _, tc := range []struct {
		condition string
		want      bool
	}{
		{`"StringEquals":{"aws:PrincipalTag/team":"blue"}`, true},
		{`"StringEquals":{"aws:principaltag/TEAM":"blue"}`, true}, // keys in any case
		{`"StringEquals":{"aws:PrincipalTag/team":"Blue"}`, false},
		{`"StringEquals":{"aws:PrincipalTag/team":["red","blue"]}`, true},
		{`"StringEquals":{"aws:PrincipalTag/team":"blue","aws:PrincipalTag/stage":"prod"}`, false},
		{`"StringEquals":{"aws:PrincipalTag/team":"blue"},"StringLike":{"aws:PrincipalTag/stage":"x*"}`, false},
		{`"StringEquals":{"aws:PrincipalTag/none":"blue"}`, false},
		{`"StringEqualsIfExists":{"aws:PrincipalTag/none":"blue"}`, true},
		{`"StringEqualsIfExists":{"aws:PrincipalTag/team":"red"}`, false},
		{`"StringNotEquals":{"aws:PrincipalTag/team":"blue"}`, false},
		{`"StringNotEquals":{"aws:PrincipalTag/team":["red","blue"]}`, false},
		{`"StringNotEquals":{"aws:PrincipalTag/none":"blue"}`, true},
		{`"StringEqualsIgnoreCase":{"aws:PrincipalTag/team":"BLUE"}`, true},
		{`"StringLike":{"aws:PrincipalTag/team":"b*e"}`, true},
		{`"StringNotLike":{"aws:PrincipalTag/team":"b*e"}`, false},
		{`"StringEquals":{"aws:PrincipalTag/team":"b*e"}`, false},
		{`"ArnLike":{"aws:PrincipalArn":"arn:aws:iam::*:role/x"}`, true},
		{`"ArnLike":{"aws:PrincipalArn":"arn:*:role/x"}`, false}, // part by part
		{`"ArnEquals":{"aws:PrincipalArn":"arn:aws:iam::1:role/?"}`, true},
		{`"ArnNotEquals":{"aws:PrincipalArn":"arn:aws:iam::*:role/x"}`, false},
		{`"Bool":{"aws:flag":true}`, true},
		{`"Bool":{"aws:flag":"false"}`, false},
		{`"Null":{"aws:PrincipalTag/none":"true"}`, true},
		{`"Null":{"aws:PrincipalTag/team":true}`, false},
		{`"StringEquals":{"aws:PrincipalTag/copy":"${aws:PrincipalTag/team}"}`, true},
		{`"ForAnyValue:StringEquals":{"aws:list":["b","x"]}`, true},
		{`"ForAllValues:StringEquals":{"aws:list":["b","x"]}`, false},
		{`"ForAllValues:StringEquals":{"aws:none":"b"}`, true},
		{`"ForAnyValue:StringEquals":{"aws:none":"b"}`, false},
	} {
		p, err := iampolicy.Parse(fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"a:b","Resource":"*","Condition":{%s}}]}`, tc.condition), nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx := iampolicy.Context{}
		for key, values := range map[string][]string{
			"aws:PrincipalTag/team": {"blue"}, "aws:PrincipalTag/copy": {"blue"}, "aws:PrincipalTag/stage": {"dev"},
			"aws:PrincipalArn": {"arn:aws:iam::1:role/x"}, "aws:flag": {"true"}, "aws:list": {"a", "b"},
		} {
			ctx.Set(key, values...)
		}
		if got := iampolicy.Decide([]*iampolicy.Policy{p}, "a:b", "r", ctx) == iampolicy.Allowed; got != tc.want {
			t.Errorf("%s: %v", tc.condition, got)
		}
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add(AllowAll)
	f.Add(trust("*"))
	f.Add(creatorTrust("arn:aws:iam::1:oidc-provider/x"))
	f.Fuzz(func(_ *testing.T, text string) {
		for _, resolve := range []iampolicy.Resolver{nil, func(string) (string, bool) { return "x", true }} {
			if p, err := iampolicy.Parse(text, resolve); err == nil {
				iampolicy.Decide([]*iampolicy.Policy{p}, "sts:AssumeRole", "r", iampolicy.Context{})
			}
		}
	})
}
