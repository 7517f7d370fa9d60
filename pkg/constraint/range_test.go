// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"strings"
	"testing"
)

func TestParseVersionRange(t *testing.T) {
	for _, test := range []struct {
		text    string
		in, out string
	}{
		{"[1.0.0,2.0.0)", "1.0.0 1 1.9.9 1.0.1-rc1 2.0.0-rc1", "0.9.9 2.0.0 2 1.0.0-rc1 INFINITY"},
		{"(1.0.0,2.0.0]", "1.0.1 2.0.0", "1.0.0 2.0.1"},
		{"[1.0.0,1.0.0]", "1.0.0 1.0", "1.0.1"},
		{"[1.0.0,INFINITY)", "1.0.0 999999999.0.0", "0.1 INFINITY"},
		{"1.2", "1.2.0 7", "1.1.9"},
	} {
		r, err := ParseVersionRange(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		for version := range strings.FieldsSeq(test.in) {
			if !r.Contains(version) {
				t.Errorf("%s has not %s", test.text, version)
			}
		}
		for version := range strings.FieldsSeq(test.out) {
			if r.Contains(version) {
				t.Errorf("%s has %s", test.text, version)
			}
		}
		if r.Contains("") || r.Contains("1.x") {
			t.Errorf("%s has what is no version", test.text)
		}
	}
	var all *VersionRange
	if !all.Contains("1.0.0") || all.Contains("one") {
		t.Error("no range is to have all versions in it, and nothing else")
	}
}

func TestParseVersionRange_Invalid(t *testing.T) {
	for _, text := range []string{
		"", "all", "[1.0.0,2.0.0", "[1.0.0, 2.0.0)", "[1.0.0]", "[1.0.0,]", "[2.0.0,1.0.0]", "[1.0.0,1.0.0)", "INFINITY", "(INFINITY,INFINITY)",
		"[1.0.0,2.0.0) OR a == b", "[1.0.0.0,2.0.0)", "[a,b]", strings.Repeat("1", MaxRangeLength+1),
	} {
		_, err := ParseVersionRange(text)
		if err == nil {
			t.Errorf("%q is taken", text)
		} else if len(err.Error()) > 300 || !strings.HasPrefix(err.Error(), "expected ") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
