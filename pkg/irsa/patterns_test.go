// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package irsa

import (
	"slices"
	"testing"
)

func mustPatterns(t *testing.T, patterns ...string) Patterns {
	t.Helper()
	p, err := ParsePatterns(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPatterns_MatchWholeARN(t *testing.T) {
	cluster := mustParse(t, "arn:aws:eks:us-west-2:123456789012:cluster/prod-1")
	for name, test := range map[string]struct {
		patterns []string
		want     bool
	}{
		"no pattern":              {nil, false},
		"an empty one":            {[]string{""}, false},
		"the ARN":                 {[]string{"arn:aws:eks:us-west-2:123456789012:cluster/prod-1"}, true},
		"a whole match":           {[]string{`arn:aws:eks:us-west-2:123456789012:cluster/prod-.*`}, true},
		"a part":                  {[]string{`123456789012`}, false},
		"the beginning":           {[]string{`arn:aws:eks:us-west-2:123456789012:cluster/prod`}, false},
		"the end":                 {[]string{`cluster/prod-1`}, false},
		"alternatives":            {[]string{`x|arn:.*`}, true},
		"alternatives of parts":   {[]string{`arn|prod-1`}, false},
		"lines":                   {[]string{`(?m)^arn$`}, false},
		"the second of two":       {[]string{`x`, `arn:.*:cluster/prod-[0-9]`}, true},
		"another account's shape": {[]string{`arn:aws:eks:us-west-2:999999999999:cluster/.*`}, false},
	} {
		if got := mustPatterns(t, test.patterns...).Approve(cluster, "prod-1"); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	for _, bad := range []string{"(", `x)|(arn`, `*`} {
		if _, err := ParsePatterns([]string{bad}); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// The author of a ManagedCluster writes its ARN. If a pattern matched the ARN alone, a cluster of any name could be accepted with the ARN of another
// one.
func TestPatterns_NameFollowsFromARN(t *testing.T) {
	const arn = "arn:aws:eks:us-west-2:123456789012:cluster/"
	for name, test := range map[string]struct {
		arn      string
		patterns []string
		want     []string
	}{
		"no match":                   {arn + "c1", []string{arn + "x.*"}, nil},
		"without a group":            {arn + "c1", []string{arn + ".*"}, []string{"c1"}},
		"with a group":               {arn + "prod-c1", []string{arn + "prod-(?P<name>.*)"}, []string{"c1"}},
		"Go's shorter form":          {arn + "prod-c1", []string{arn + "prod-(?<name>.*)"}, []string{"c1"}},
		"of the account":             {arn + "c1", []string{`arn:aws:eks:us-west-2:(?P<name>\d+):cluster/c1`}, []string{"123456789012"}},
		"a group of another name":    {arn + "prod-c1", []string{arn + "prod-(?P<cluster>.*)"}, []string{"prod-c1"}},
		"a group that takes no part": {arn + "c1", []string{arn + "c1|(?P<name>x)"}, nil},
		"a group that is empty":      {arn + "c1", []string{arn + "c1(?P<name>x*)"}, nil},
		"several patterns":           {arn + "prod-c1", []string{arn + ".*", arn + "prod-(?P<name>.*)", arn + "p.*"}, []string{"prod-c1", "c1"}},
	} {
		patterns, cluster := mustPatterns(t, test.patterns...), mustParse(t, test.arn)
		if got := patterns.Names(cluster); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		for _, other := range []string{"", "evil", "C1", "c1-"} {
			if patterns.Approve(cluster, other) {
				t.Errorf("%s: %q is approved", name, other)
			}
		}
	}
}
