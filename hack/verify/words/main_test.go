// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// TestRules_DetectPlantedSentence shows for each rule a sentence that breaks it, and one beside it that does not.
func TestRules_DetectPlantedSentence(t *testing.T) {
	planted := map[string][2]string{
		"cleft":            {"name is that of the controller.", "A name that is taken is refused."},
		"passive speech":   {"The front is asked for the namespace.", "The agent asks the front for the namespace."},
		"is none":          {"There is none in the cache.", "None of them fails."},
		"anew":             {"It reads the record anew.", "It reads a new record."},
		"somebody":         {"Whoever writes it owns the node.", "A user who writes it owns the node."},
		"who as a subject": {"It is secret. Who reads it is the cluster.", "Who may read it?"},
		"meanwhile":        {"The lease has expired meanwhile.", "The lease has expired."},
		"is to be":         {"The object is to be deleted.", "It has the right to be there."},
		"says how":         {"spec says which cluster it is.", "The message says what to do."},
		"is how many":      {"limit is how many objects fit.", "The question is how to fit them."},
		"let go":           {"It lets the work go.", "It lets users choose."},
	}
	for i := range rules {
		r := &rules[i]
		sentences, ok := planted[r.name]
		if !ok {
			t.Errorf("no sentence breaks the rule %q", r.name)
			continue
		}
		for _, form := range []struct{ file, text string }{
			{"x.go", "package x\n\n// X does it.\n// %\nvar X = 1\n"},
			{"x.go", "package x\n\nvar x = `%`\n"},
			{"x.md", "# X\n\nFirst.\n%\n"},
			{"x.md", "| a | b |\n|---|---|\n| x | % |\n"},
		} {
			for j, sentence := range sentences {
				n := 0
				for _, s := range prose(form.file, []byte(strings.ReplaceAll(form.text, "%", sentence))) {
					for _, p := range find(form.file, s) {
						if p.rule == r {
							n++
						}
					}
				}
				if want := 1 - j; n != want {
					t.Errorf("%s: %q in %q: found %d times, expected %d", r.name, sentence, form.text, n, want)
				}
			}
		}
	}
}

// TestReport_OverLimit verifies that a rule passes at its limit, and fails with one place more.
func TestReport_OverLimit(t *testing.T) {
	for i := range rules {
		const words = 100000
		r := &rules[i]
		most := int(r.limit * words / 10000)
		if names := report(t.Output(), words, map[*rule]int{r: most}); len(names) > 0 {
			t.Errorf("%s: %d places exceed the limit %g: %q", r.name, most, r.limit, names)
		}
		if names := report(t.Output(), words, map[*rule]int{r: most + 1}); len(names) != 1 || names[0] != r.name {
			t.Errorf("%s: %d places exceed %q, expected this rule", r.name, most+1, names)
		}
	}
}

// TestProse_IgnoresCode: code, comments for tools and strings of tests are not prose.
func TestProse_IgnoresCode(t *testing.T) {
	for _, test := range []struct{ file, text string }{
		{"x.md", "```console\n$ echo anew\n```\n"},
		{"x.md", "Run `echo anew`.\n"},
		{"x.md", "<!-- run:\n$ echo anew\n-->\n"},
		{"x_test.go", "package x\n\nvar x = \"again and anew\"\n"},
		{"x.go", "package x\n\n//go:generate echo anew\n"},
		{"x.go", "package x\n\nvar anew = 1\n"},
	} {
		for _, s := range prose(test.file, []byte(test.text)) {
			if len(find(test.file, s)) > 0 {
				t.Errorf("%q is taken for prose", s.text)
			}
		}
	}
}

// TestProse_JoinsLines: a turn of phrase may begin in one line and end in the next.
func TestProse_JoinsLines(t *testing.T) {
	for file, text := range map[string]string{"x.go": "package x\n\n// The front is\n// asked twice.\nvar x = 1\n", "x.md": "The front is\nasked twice.\n"} {
		found := 0
		for _, s := range prose(file, []byte(text)) {
			found += len(find(file, s))
		}
		if found != 1 {
			t.Errorf("%s: %d places were found in %q, expected 1", file, found, text)
		}
	}
}
