// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	madeMetric = regexp.MustCompile(`"((?:clusterhub|scheduling)_[a-z_]+)"`)
	toldMetric = regexp.MustCompile("`((?:clusterhub|scheduling)_[a-z_]+)`")
)

// TestDocs_NameEveryMetric: those that the programs have, and no others.
func TestDocs_NameEveryMetric(t *testing.T) {
	made := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "pkg"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range madeMetric.FindAllStringSubmatch(string(text), -1) {
			made[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, found := range toldMetric.FindAllStringSubmatch(string(text), -1) {
		told[found[1]] = true
	}
	if len(made) == 0 || !maps.Equal(made, told) {
		t.Errorf("docs/metrics.md has %q, and the programs have %q", slices.Sorted(maps.Keys(told)), slices.Sorted(maps.Keys(made)))
	}
}
