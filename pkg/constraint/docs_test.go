// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tables returns the rows of the page for users, by the first two cells of the table's head. Cells are without backquotes.
func tables(t *testing.T) map[string][][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/edge.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][][]string{}
	head := ""
	for _, line := range strings.Split(string(page), "\n") {
		if !strings.HasPrefix(line, "| ") {
			if !strings.HasPrefix(line, "|-") {
				head = ""
			}
			continue
		}
		var cells []string
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.Trim(strings.TrimSpace(cell), "`"))
		}
		if head == "" {
			head = cells[0] + " " + cells[1]
			continue
		}
		found[head] = append(found[head], cells)
	}
	return found
}

func TestDocs_Examples(t *testing.T) {
	rows := tables(t)["property expression"]
	if len(rows) < 25 {
		t.Errorf("expected examples, found %d", len(rows))
	}
	for _, row := range rows {
		var property Property
		if err := json.Unmarshal([]byte(row[0]), &property); err != nil {
			t.Fatalf("%s: %v", row[0], err)
		}
		constraints, err := Parse([]string{row[1]})
		said := "an error"
		if err == nil {
			said = map[bool]string{true: "yes", false: "no"}[constraints.Satisfied(mustProperties(t, property))]
		}
		if said != row[2] {
			t.Errorf("%s with %s: the page says %q, and it is %q", row[1], row[0], row[2], said)
		}
	}
}

func TestDocs_Lists(t *testing.T) {
	column := func(head string) []string {
		var cells []string
		for _, row := range tables(t)[head] {
			cells = append(cells, row[0])
		}
		return cells
	}
	var codes []string
	for _, code := range []Code{
		NotEqualMissing, QuotedValue, NumberAsText, KubernetesVersion, MissingOperand, ReversedOperator, NameWithMark, SingleQuotes, Unsatisfiable,
	} {
		codes = append(codes, string(code))
	}
	if found := column("code about"); !slices.Equal(found, codes) {
		t.Errorf("the page has the warnings %q, and there are %q", found, codes)
	}
	types := []string{"none"}
	for _, one := range Types {
		types = append(types, string(one))
	}
	found := column("type value")
	slices.Sort(found)
	slices.Sort(types)
	if !slices.Equal(found, types) {
		t.Errorf("the page has the types %q, and there are %q", found, types)
	}
	var bounds []string
	for _, row := range tables(t)["what at most"] {
		bounds = append(bounds, row[1])
	}
	var want []string
	for _, bound := range []int{MaxExpressions, MaxExpressionLength, MaxTerms, MaxDepth, MaxProperties, MaxNameLength, MaxValueLength} {
		want = append(want, strconv.Itoa(bound))
	}
	if !slices.Equal(bounds, want) {
		t.Errorf("the page has the bounds %q, and they are %q", bounds, want)
	}
}
