// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"strings"
	"testing"
)

// TestDocs_BlocksOfOtherTestsAreTyped: the test that a comment names is in the folder that it names, and what is there asks the pages for
// its blocks.
func TestDocs_BlocksOfOtherTestsAreTyped(t *testing.T) {
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
	for _, lie := range []string{"hack/helm/e2e TestDocs_NoSuchTest", "hack/no/such/folder TestDocs_HelmPage", "hack/helm/charts TestGenerated"} {
		if types(lie) == nil {
			t.Errorf("%s is not found out", lie)
		}
	}
}

// types says what is wrong with a folder and a test that is to type blocks.
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
