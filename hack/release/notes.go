// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// kinds are those of changes, in the order of the notes, with their headings.
var kinds = []struct{ name, heading string }{
	{"security", "Security"}, {"removal", "Removed"}, {"deprecation", "Deprecated"}, {"change", "Changed"}, {"feature", "New"}, {"fix", "Fixed"},
}

// change is a fragment of release notes: a file in docs/changes.
type change struct {
	// Kind is one of kinds, and Area what the change is about, such as images.
	Kind string `json:"kind"`
	Area string `json:"area"`
	// Action is what those who upgrade have to do, or empty.
	Action string `json:"action"`
	text   string
}

// changes reads the fragments of a folder, by the names of their files.
func changes(dir string) (all []change, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	for _, name := range files {
		if filepath.Base(name) == "README.md" {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		c, err := parse(string(data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w. docs/changes/README.md says how it has to be", name, err)
		}
		all = append(all, c)
	}
	return all, nil
}

func parse(data string) (c change, err error) {
	const fence = "---\n"
	header, text, ok := strings.Cut(strings.TrimPrefix(data, fence), "\n"+fence)
	if !ok || !strings.HasPrefix(data, fence) {
		return c, fmt.Errorf("it has to begin with kind and area between two lines of ---")
	}
	if err := yaml.UnmarshalStrict([]byte(header), &c); err != nil {
		return c, err
	}
	var names []string
	for _, kind := range kinds {
		names = append(names, kind.name)
	}
	c.text = strings.Join(strings.Fields(text), " ")
	switch {
	case !slices.Contains(names, c.Kind):
		return c, fmt.Errorf("the kind is %q, expected one of %s", c.Kind, strings.Join(names, ", "))
	case c.Area == "":
		return c, fmt.Errorf("it has no area")
	case c.text == "":
		return c, fmt.Errorf("it has no text after its header")
	case c.Kind == "removal" && c.Action == "":
		return c, fmt.Errorf("a removal needs an action: what do those do who have used it?")
	}
	return c, nil
}

// notes are those of a release. What has to be done comes first, and what is about the same stands together.
func notes(version string, all []change) string {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b change) int { return strings.Compare(strings.ToLower(a.Area), strings.ToLower(b.Area)) })
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n", version)
	section := func(heading string, line func(change) string) {
		started := false
		for _, c := range all {
			said := line(c)
			if said == "" {
				continue
			}
			if !started {
				fmt.Fprintf(&out, "\n## %s\n\n", heading)
				started = true
			}
			fmt.Fprintf(&out, "- **%s**: %s\n", c.Area, said)
		}
	}
	section("Before you upgrade", func(c change) string { return c.Action })
	for _, kind := range kinds {
		section(kind.heading, func(c change) string {
			if c.Kind == kind.name {
				return c.text
			}
			return ""
		})
	}
	if len(all) == 0 {
		out.WriteString("\nNo change that users notice.\n")
	}
	return out.String()
}
