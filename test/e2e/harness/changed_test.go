// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// endToEnd lists the folders in which each package needs an end-to-end test for a change: the parts of the programs, and not the libraries.
var endToEnd = []string{"cmd/*", "pkg/admission/*", "pkg/agent", "pkg/agent/tasks/*", "pkg/clusterprovider/*", "pkg/controllers/*/*", "pkg/operator/*", "pkg/registry/*/*"}

// readList reads a file of test/e2e that hack/test.sh reads. Each row has three fields.
func readList(t *testing.T, file string) (rows [][]string) {
	t.Helper()
	for line := range strings.Lines(string(Must(os.ReadFile(filepath.Join("..", file)))(t))) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 || slices.Contains(fields, "") {
			t.Fatalf("%s: %q: expected three fields with tabs between them", file, line)
		}
		rows = append(rows, fields)
	}
	return rows
}

// TestChanged_NamesTests verifies that the rows of changed.tsv, which hack/test.sh changed reads, name paths and tests that exist, and that all
// programs and their parts have rows.
func TestChanged_NamesTests(t *testing.T) {
	all := readSources(t)
	var paths []string
	for _, fields := range readList(t, "changed.tsv") {
		paths = append(paths, fields[0])
		if _, err := os.Stat(filepath.Join(Root, fields[0])); err != nil {
			t.Errorf("%q: %v", fields, err)
		}
		tests := Must(regexp.Compile(fields[2]))(t)
		found := false
		for name := range all {
			folder, test, _ := strings.Cut(name, ".")
			found = found || folder == fields[1] && strings.HasPrefix(test, "Test") && tests.MatchString(test)
		}
		if !found {
			t.Errorf("%q: no test of test/e2e/%s fits", fields, fields[1])
		}
	}
	if !slices.IsSorted(paths) {
		t.Error("the rows are not in the order of their paths")
	}
	for _, pattern := range endToEnd {
		for _, folder := range Must(filepath.Glob(filepath.Join(Root, pattern)))(t) {
			folder = Must(filepath.Rel(Root, folder))(t)
			if info, err := os.Stat(filepath.Join(Root, folder)); err != nil || !info.IsDir() {
				continue
			}
			if !slices.ContainsFunc(paths, func(path string) bool { return folder == path || strings.HasPrefix(folder, path+"/") }) {
				t.Errorf("no row of changed.tsv is for %s", folder)
			}
		}
	}
}
