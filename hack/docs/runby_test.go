// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDocs_BlocksOfOtherTestsAreRun: the test that a comment names is in the folder that it names, and what is there asks the pages for
// its blocks.
func TestDocs_BlocksOfOtherTestsAreRun(t *testing.T) {
	found := 0
	for _, b := range blocksOf(t) {
		if b.RunBy == "" {
			continue
		}
		found++
		if err := types(b.RunBy); err != nil {
			t.Errorf("%s: %v", b.Where(), err)
		}
	}
	if found == 0 {
		t.Error("no block is typed by another test")
	}
	for _, lie := range []string{"hack/charts/e2e TestDocs_NoSuchTest", "hack/no/such/folder TestDocs_HelmPage", "hack/charts TestGenerated"} {
		if types(lie) == nil {
			t.Errorf("%s is not found out", lie)
		}
	}
}

// types returns what is wrong with a folder and a test that should run blocks.
func types(by string) error {
	source, there, err := namedTest(by)
	if err != nil {
		return err
	}
	folder, name, _ := strings.Cut(by, " ")
	call := fmt.Sprintf("typing.RunBy(t, harness.Root, %q, ", folder)
	asks := strings.Contains(source, call+"t.Name())") || strings.Contains(source, call) && strings.Contains(source, fmt.Sprintf("%q", name))
	if !there || !asks {
		return fmt.Errorf("%s: is the test there: %t; does the folder ask for its blocks: %t", by, there, asks)
	}
	return nil
}

// namedTest is what is in the files of tests of a folder, and whether the test is among them: named is "FOLDER TestName".
func namedTest(named string) (source string, there bool, err error) {
	folder, name, _ := strings.Cut(named, " ")
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		return "", false, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", false, err
		}
		source += string(data)
	}
	there = slices.ContainsFunc(testFunc.FindAllStringSubmatch(source, -1), func(match []string) bool { return match[1] == name })
	return source, there, nil
}
