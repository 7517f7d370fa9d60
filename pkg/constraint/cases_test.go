// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

// testCase is a row of the table.
type testCase struct {
	source           string
	expressions      []string
	properties       []Property
	valid, satisfied bool
}

// testCases reads the table.
func testCases(t testing.TB) []testCase {
	t.Helper()
	table, err := os.ReadFile("testdata/edge-constraint-cases.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var cases []testCase
	for _, line := range strings.Split(strings.TrimSpace(string(table)), "\n")[2:] {
		columns := strings.Split(line, "\t")
		if len(columns) != 5 {
			t.Fatalf("expected 5 columns, found %d: %s", len(columns), line)
		}
		row := testCase{source: columns[0], valid: columns[3] == "true", satisfied: columns[4] == "true"}
		if err := errors.Join(json.Unmarshal([]byte(columns[1]), &row.expressions), json.Unmarshal([]byte(columns[2]), &row.properties)); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		cases = append(cases, row)
	}
	return cases
}

func TestCases(t *testing.T) {
	cases := testCases(t)
	if len(cases) != 123 {
		t.Errorf("expected the 123 rows of the table, found %d", len(cases))
	}
	for _, row := range cases {
		t.Run(row.source, func(t *testing.T) {
			constraints, err := Parse(row.expressions)
			if (err == nil) != row.valid {
				t.Fatalf("%q: expected valid to be %v, found %v", row.expressions, row.valid, err)
			}
			if err != nil {
				t.Logf("%q: %v", row.expressions, err)
				return
			}
			if found := constraints.Satisfied(mustProperties(t, row.properties...)); found != row.satisfied {
				t.Errorf("%q with %v: expected %v, found %v", row.expressions, row.properties, row.satisfied, found)
			}
		})
	}
}

func mustProperties(t testing.TB, properties ...Property) *Properties {
	t.Helper()
	checked, err := NewProperties(properties)
	if err != nil {
		t.Fatal(err)
	}
	return checked
}

func mustParse(t testing.TB, expressions ...string) *Constraints {
	t.Helper()
	constraints, err := Parse(expressions)
	if err != nil {
		t.Fatalf("%q: %v", expressions, err)
	}
	return constraints
}
