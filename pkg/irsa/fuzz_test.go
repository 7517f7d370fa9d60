// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package irsa

import (
	"bytes"
	"encoding/json"
	"net/url"
	"testing"
)

// FuzzEquivalent: a policy is equivalent to itself in each form that IAM may return it in, and the order does not matter.
func FuzzEquivalent(f *testing.F) {
	const trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::123456789012:role/a"},"Action":"sts:AssumeRole"}]}`
	f.Add(trust, trust)
	f.Add(trust, `{"Statement":{"Principal":"*"}}`)
	f.Add(`{"Statement":[{"Principal":{"AWS":["a","b"]}}]}`, `{"Statement":{"Principal":{"AWS":["b","a","a"]}}}`)
	f.Add(`{"Statement":[{"Effect":"Allow"}]}`, `{"Statement":[{"Effect":"Deny"}]}`)
	f.Add("%7B%7D", "{}")
	f.Add("null", "")
	f.Fuzz(func(t *testing.T, a, b string) {
		if Equivalent(a, b) != Equivalent(b, a) {
			t.Errorf("%q and %q are equivalent in one direction", a, b)
		}
		if !Equivalent(a, a) {
			return
		}
		if escaped := url.PathEscape(a); bytes.HasPrefix(bytes.TrimSpace([]byte(a)), []byte("{")) && !Equivalent(a, escaped) {
			t.Errorf("%q is not what it is escaped", a)
		}
		var indented bytes.Buffer
		if json.Indent(&indented, []byte(a), " ", "\t") == nil && !Equivalent(a, indented.String()) {
			t.Errorf("%q is not what it is indented", a)
		}
	})
}

// FuzzParsePatterns: an approved ARN matches as a whole, so nothing can be added around it.
func FuzzParsePatterns(f *testing.F) {
	const arn = "arn:aws:eks:us-west-2:123456789012:cluster/prod"
	for _, pattern := range []string{arn, ".*", "arn:.*/prod-[0-9]+", "a)|(b", "(?i)ARN:.*", "(?m)^arn.*$", "", "x|arn:.*", `\Q`} {
		f.Add(pattern)
	}
	cluster, err := ParseClusterARN(arn)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		patterns, err := ParsePatterns([]string{pattern})
		if err != nil || !patterns.Approve(cluster, cluster.Name) {
			return
		}
		whole := patterns[0].FindStringIndex(arn)
		if len(patterns) != 1 || whole == nil || whole[0] != 0 || whole[1] != len(arn) {
			t.Errorf("%q approves %s by %v", pattern, arn, whole)
		}
	})
}
