// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/edge"
)

// The page for users explains every reason, and no others.
func TestDocs_HaveEveryReason(t *testing.T) {
	var known []string
	for _, file := range []string{"../reason.go", "doc.go"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`Reason = "(\w+)"`).FindAllStringSubmatch(string(data), -1) {
			if match[1] != string(edge.Fits) {
				known = append(known, match[1])
			}
		}
	}
	page, err := os.ReadFile("../../../docs/edge-deploycheck.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Reasons\n")
	var told []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(table, -1) {
		for _, match := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
			told = append(told, match[1])
		}
	}
	slices.Sort(known)
	slices.Sort(told)
	if len(known) < 25 || !slices.Equal(known, told) {
		t.Errorf("the page has the reasons %q, and there are %q", told, known)
	}
	if len(known) > maxReasons {
		t.Errorf("there are %d reasons, and room for %d", len(known), maxReasons)
	}
}
