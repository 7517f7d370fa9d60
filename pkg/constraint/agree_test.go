// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// someValues are values of properties, with various peculiarities.
var someValues = []Property{
	{Value: 0.0}, {Value: 1.0}, {Value: 1.5}, {Value: 2.0}, {Value: -1.0}, {Value: 1e9}, {Value: true}, {Value: false}, {Value: ""}, {Value: " "},
	{Value: `"`}, {Value: `""`}, {Value: "a"}, {Value: "b"}, {Value: "a,b"}, {Value: " a , b "}, {Value: `"a"`}, {Value: `"a","b"`},
	{Value: `""a""`}, {Value: `" a "`}, {Value: "true"}, {Value: "1"}, {Value: "1.0"}, {Value: "1.0.0"}, {Value: "1.5.0"}, {Value: "v1.5.0"},
	{Value: "2.0.0"}, {Value: "01.5"}, {Value: "2.0.0-rc1"}, {Value: "2.0.0-rc.1"}, {Value: "2.0.0-rc.2+b"}, {Value: "1.99999999999999999999.0"},
	{Value: "INFINITY"}, {Value: "[1.0.0"}, {Value: "[1.0.0,2.0.0)"}, {Value: "a b"}, {Value: "5g"}, {Value: "b,a,1.5.0"}, {Value: "in"},
	{Value: "a", Type: List}, {Value: "a,b", Type: List}, {Value: `x," a "`, Type: List}, {Value: "b, c", Type: List}, {Value: "", Type: List},
	{Value: "1.5.0", Type: List}, {Value: `"a","b"`, Type: List}, {Value: "1.0.0", Type: Version}, {Value: "1.5.0", Type: Version},
	{Value: "2", Type: Version}, {Value: "INFINITY", Type: Version}, {Value: "a", Type: String}, {Value: "1.5.0", Type: String},
	{Value: 1.0, Type: Int}, {Value: 2.5, Type: Float}, {Value: true, Type: Boolean},
}

// someLiterals are values of expressions.
var someLiterals = []string{
	"0", "1", "01", "1.0", "-1", "+1", "1.5", "2", "a", "b", `"a"`, `"a,b"`, `" a , b "`, `" "`, `","`, `"a b"`, "true", `"true"`, "T", "in",
	"index", "1.0.0", "1.5.0", "2.0.0", `"1.0.0"`, "..", "1..2", ".5", "..5", "[1.0.0,2.0.0)", "(1.0.0,2.0.0]", "[2.0.0,1.0.0]", "[1.5.0,INFINITY)",
	"[1.0.0,INFINITY]", "(1.5.0,1.5.0)", "[1.5.0,1.5.0]", "[1.0,2.0)", "[1.0.0, 2.0.0)", "NaN", "Infinity", "-Inf", "+1e400", "+1e3", "5g", "-5g", "-", "v1.5.0", `""`,
	`"'a','b'"`, "漢", `"INFINITY"`, `"2.0.0-rc1"`, "AND", "1.", "a,b", "a:b",
}

var (
	someNames     = []string{"a", "b", "a!", "in", "inn", "domain", "AND", "!a", "5a", "..a", ".5", "漢字"}
	someOperators = []string{"==", "=", "!=", "<", ">", "<=", ">=", "=<", "=>", "=<=", "=>=", "in", "in", "===", "IN"}
	someSpaces    = []string{"", "", " ", " ", " ", "  ", "\n", "\t"}
	someJunctions = []string{" AND ", " OR ", " && ", " || ", " AND ", " OR ", "AND ", " AND", " and ", "\tOR\n", " AND AND "}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// mostly returns the element at first, or sometimes another.
func mostly[T any](r *rand.Rand, from []T, first int) T {
	if r.IntN(8) > 0 {
		return from[r.IntN(first)]
	}
	return pick(r, from)
}

func randomExpression(r *rand.Rand, depth int) string {
	var expression strings.Builder
	for i := 0; ; i++ {
		switch {
		case depth > 0 && r.IntN(4) == 0:
			expression.WriteString("(" + pick(r, someSpaces) + randomExpression(r, depth-1) + pick(r, someSpaces) + ")")
		case r.IntN(20) == 0:
		default:
			expression.WriteString(mostly(r, someNames, 2) + pick(r, someSpaces) + mostly(r, someOperators, 13) + pick(r, someSpaces) + pick(r, someLiterals))
		}
		if i > 2 || r.IntN(2) == 0 {
			break
		}
		expression.WriteString(mostly(r, someJunctions, 4))
	}
	return expression.String()
}

// someProperties returns properties with these names.
func someProperties(r *rand.Rand, names ...string) []Property {
	var properties []Property
	for _, name := range names {
		if r.IntN(8) > 0 {
			property := pick(r, someValues)
			property.Name = name
			properties = append(properties, property)
		}
	}
	return properties
}

// agree compares the results of the two implementations.
func agree(t *testing.T, expression string, properties []Property) (valid, satisfied bool) {
	t.Helper()
	valid, satisfied = secondReading(expression, properties)
	constraints, err := Parse([]string{expression})
	switch {
	case err != nil && strings.Contains(err.Error(), "deep"):
		return false, false
	case (err == nil) != valid:
		t.Fatalf("%q: expected valid to be %v, found %v", expression, valid, err)
	case err != nil:
		if fault := err.(*Error); fault.Position > len([]rune(expression))+1 || fault.Expected == "" || fault.Found == "" {
			t.Fatalf("%q: the error is incomplete: %+v", expression, fault)
		}
	case constraints.Satisfied(mustProperties(t, properties...)) != satisfied:
		t.Fatalf("%q with %+v: expected %v", expression, properties, satisfied)
	}
	return valid, satisfied
}

func TestSecondReading(t *testing.T) {
	for _, row := range testCases(t) {
		valid, satisfied := true, true
		for _, expression := range row.expressions {
			one, sat := agree(t, expression, row.properties)
			valid, satisfied = valid && one, satisfied && sat
		}
		if valid != row.valid || valid && satisfied != row.satisfied {
			t.Errorf("the second reading of %q says %v and %v", row.expressions, valid, satisfied)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	counts := map[string]int{}
	for range 60000 {
		valid, satisfied := agree(t, randomExpression(r, 2), someProperties(r, someNames...))
		switch {
		case !valid:
			counts["invalid"]++
		case satisfied:
			counts["satisfied"]++
		default:
			counts["not satisfied"]++
		}
	}
	t.Log(counts)
	for _, kind := range []string{"invalid", "satisfied", "not satisfied"} {
		if counts[kind] < 2000 {
			t.Errorf("only %d are %s", counts[kind], kind)
		}
	}
}

// TestEachComparison compares every value with every literal by every operator.
func TestEachComparison(t *testing.T) {
	for _, operator := range someOperators {
		for _, literal := range someLiterals {
			for _, property := range someValues {
				property.Name = "a"
				agree(t, "a "+operator+" "+literal, []Property{property})
			}
		}
	}
}

func FuzzSecondReading(f *testing.F) {
	for _, row := range testCases(f) {
		for _, expression := range row.expressions {
			f.Add(expression, uint64(len(expression)))
		}
	}
	f.Fuzz(func(t *testing.T, expression string, seed uint64) {
		if len(expression) > 300 {
			t.Skip("the second reading is slow")
		}
		r := rand.New(rand.NewPCG(seed, 0))
		names := slices.Clone(someNames)
		if constraints, err := Parse([]string{expression}); err == nil {
			names = constraints.Names()
			constraints.Lint()
			constraints.Requires()
		}
		agree(t, expression, someProperties(r, names...))
	})
}
