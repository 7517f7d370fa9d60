// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

// TestReference_HasEveryServedVersion: a group that is served and has no page would be found by no reader.
func TestReference_HasEveryServedVersion(t *testing.T) {
	pages, err := apiPages()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(root, "artifacts", "deploy", "base", "apiservices.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	served := regexp.MustCompile(`(?m)^  name: (v\w+)\.(\S+)$`).FindAllStringSubmatch(string(manifest), -1)
	if len(served) == 0 || len(served) != len(pages) {
		t.Errorf("%d APIServices and %d pages", len(served), len(pages))
	}
	for _, match := range served {
		name, found := "api/"+match[2]+"_"+match[1]+".md", false
		for _, p := range pages {
			found = found || p.name == name
		}
		if !found {
			t.Errorf("there is no page %s: add the group to installs", name)
		}
	}
}

// TestConditions_AreAllExplained tries what fails the build: a condition that no comment explains, and one of a package of which the page
// does not know what it is about.
func TestConditions_AreAllExplained(t *testing.T) {
	const explained, bare = "package x\n\nconst (\n\t// ConditionWarm is True when it is warm.\n\tConditionWarm = \"Warm\"\n\treasonSun = \"Sun\" // the sun shines\n)\n",
		"package x\n\nconst ReasonRain = \"Rain\"\n"
	for name, test := range map[string]struct{ folder, text, want, refused string }{
		"explained":  {"pkg/work/x", explained, "| `Warm` | True when it is warm |", ""},
		"the reason": {"pkg/work/x", explained, "| `Sun` | the sun shines |", ""},
		"bare":       {"pkg/work/x", bare, "", "ReasonRain has no comment"},
		"elsewhere":  {"pkg/weather", explained, "", "on which objects"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), filepath.FromSlash(test.folder))
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "x.go"), []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			text, err := conditionsPage(strings.TrimSuffix(folder, filepath.FromSlash(test.folder)))
			switch {
			case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("got the error %v, want one with %q", err, test.refused)
			case test.refused == "" && (err != nil || !strings.Contains(text, test.want)):
				t.Errorf("got %s and the error %v, want %q", text, err, test.want)
			}
		})
	}
}
