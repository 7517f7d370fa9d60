// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"regexp"
	"testing"
)

// generatedFile is the file that fakeaws embeds.
const generatedFile = "../api/model.json"

func TestGenerate_FileIsUpToDateWithAWSModels(t *testing.T) {
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(generatedFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the models give: run go generate in test/fakeaws", generatedFile)
	}
	if !bytes.Contains(got, []byte("Do not edit.")) {
		t.Errorf("%s does not say that it is generated", generatedFile)
	}
}

func TestGenerate_IsReproducible(t *testing.T) {
	first, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		again, err := generate()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, again) {
			t.Fatal("two runs differ")
		}
	}
}

func TestGoPattern_MatchesAWSPattern(t *testing.T) {
	for _, tc := range []struct {
		java, matches, not string
	}{
		{`[\w+=,.@-]+`, "ocm-hub-79e9", "a/b"},
		{`[\w+=,.@-]+`, "hub_managed-cluster-identity-creator", "a b"},
		{`(\u002F)|(\u002F[\u0021-\u007E]+\u002F)`, "/team/", "/team"},
		{`[\u0009\u000A\u000D\u0020-\u00FF]+`, "{\n}", "\u4e16"},
		{`[\u0009\u0020-\uD7FF\uE000-\uFFFD\u10000-\u10FFFF]+`, "arn:aws \U0001F600", "\x00"},
		{`[\p{L}\p{Z}\p{N}_.:/=+\-@]*`, "grüße 1", "<"},
	} {
		pattern, err := goPattern(tc.java)
		if err != nil {
			t.Fatal(err)
		}
		re := regexp.MustCompile(pattern)
		if !re.MatchString(tc.matches) {
			t.Errorf("%s, as %s, does not match %q", tc.java, pattern, tc.matches)
		}
		if re.MatchString(tc.not) {
			t.Errorf("%s, as %s, matches %q", tc.java, pattern, tc.not)
		}
	}
}
