// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		expressions []string
		want        Error
	}{
		{[]string{"a == 1", "b"}, Error{1, 2, "an operator: ==, =, !=, <, >, <=, >= or in", "the end"}},
		{[]string{"ns == 5g-edge"}, Error{0, 7, "double quotes around a value that begins as a number does", `"5g-edge"`}},
		{[]string{"漢字 == a:b"}, Error{0, 8, "a space and AND, OR, && or ||, or the end", `":"`}},
		{[]string{"a == 1 and b == 2"}, Error{0, 8, "a space and AND, OR, && or ||, or the end", `"and"`}},
		{[]string{"(a == 1"}, Error{0, 8, "a closing parenthesis", "the end"}},
		{[]string{"a == 1)"}, Error{0, 7, "no closing parenthesis, as none is open", `")"`}},
		{[]string{`a == "b`}, Error{0, 8, "the closing quote", "the end"}},
		{[]string{`a == ""`}, Error{0, 7, "at least one character between the quotes", `"\""`}},
		{[]string{"a =="}, Error{0, 5, "a value", "the end"}},
		{[]string{"a in [1.0.0,2.0.0"}, Error{0, 18, "] or ) at the end of the range", "the end"}},
		{[]string{"a in [1.0.0, 2.0.0)"}, Error{0, 13, "a version of three numbers, or INFINITY, without spaces", `" "`}},
		{[]string{"a in [..,2.0.0)"}, Error{0, 7, "a version of three numbers", `".."`}},
		{[]string{"main foo"}, Error{0, 6, "an operator: ==, =, !=, <, >, <=, >= or in", `"foo"`}},
		{[]string{"a == \xff"}, Error{0, 6, "a value: a word, a number, a version, text in double quotes, or a range of versions", `"\xff"`}},
	} {
		_, err := Parse(test.expressions)
		var fault *Error
		if !errors.As(err, &fault) || *fault != test.want {
			t.Errorf("%q: expected %+v, found %+v", test.expressions, test.want, fault)
		}
	}
	_, err := Parse([]string{"a == 1", "b > x"})
	if want := `expression 2, character 5: expected after > a number without quotes, found "x"`; err == nil || err.Error() != want {
		t.Errorf("expected %q, found %v", want, err)
	}
}

func TestBounds(t *testing.T) {
	terms := func(count int) string { return strings.TrimSuffix(strings.Repeat("a = 1 AND ", count), " AND ") }
	deep := func(depth int) string { return strings.Repeat("(", depth) + strings.Repeat(")", depth) }
	half := []string{terms(MaxTerms / 2), terms(MaxTerms / 2)}
	for _, test := range []struct {
		name            string
		within, outside []string
	}{
		{"expressions", make([]string, MaxExpressions), make([]string, MaxExpressions+1)},
		{"length", []string{strings.Repeat(" ", MaxExpressionLength)}, []string{strings.Repeat(" ", MaxExpressionLength+1)}},
		{"terms", half, append(slices.Clone(half), "a = 1")},
		{"depth", []string{deep(MaxDepth)}, []string{deep(MaxDepth + 1)}},
	} {
		if _, err := Parse(test.within); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		_, err := Parse(test.outside)
		if err == nil || !strings.Contains(err.Error(), "expected") || !strings.Contains(err.Error(), " at most ") && !strings.Contains(err.Error(), " deep") {
			t.Errorf("%s: expected an error with the bound, found %v", test.name, err)
		}
		if found := Lint(test.outside); found != nil {
			t.Errorf("%s: expected no warnings of what cannot be read, found %v", test.name, found)
		}
	}
}

func TestNewProperties(t *testing.T) {
	long := strings.Repeat("x", MaxValueLength+1)
	for _, test := range []struct {
		property Property
		fault    string
	}{
		{Property{Name: "p", Value: "a"}, ""},
		{Property{Name: "p", Value: "a", Type: String}, ""},
		{Property{Name: "p", Value: "a, b", Type: List}, ""},
		{Property{Name: "p", Value: "1.2", Type: Version}, ""},
		{Property{Name: "p", Value: true, Type: Boolean}, ""},
		{Property{Name: "p", Value: 3, Type: Int}, ""},
		{Property{Name: "p", Value: int64(3), Type: Int}, ""},
		{Property{Name: "p", Value: json.Number("2.5"), Type: Float}, ""},
		{Property{Name: "", Value: "a"}, "expected a name"},
		{Property{Name: strings.Repeat("n", MaxNameLength+1), Value: "a"}, "expected a name"},
		{Property{Name: "p", Value: long}, "at most 4096 bytes, found 4097"},
		{Property{Name: "p", Value: "a", Type: "text"}, `expected the type to be one of "string", "version"`},
		{Property{Name: "p", Value: "true", Type: Boolean}, `expected true or false, without quotes, found "true"`},
		{Property{Name: "p", Value: "1", Type: Int}, "expected a number"},
		{Property{Name: "p", Value: 1.5, Type: Int}, "expected a whole number, found 1.5"},
		{Property{Name: "p", Value: 1.5, Type: String}, "expected no number"},
		{Property{Name: "p", Value: true, Type: Int}, "expected no boolean"},
		{Property{Name: "p", Value: "v1.2.3", Type: Version}, "expected a version"},
		{Property{Name: "p", Value: "01.2.3", Type: Version}, "expected a version"},
		{Property{Name: "p", Value: "1.2.3-rc1", Type: Version}, "expected a version"},
		{Property{Name: "p", Value: "1.2.3.4", Type: Version}, "expected a version"},
		{Property{Name: "p", Value: nil}, "found nothing"},
		{Property{Name: "p", Value: []string{"a"}}, "found a []string"},
		{Property{Name: "p", Value: math.NaN()}, "expected a string, a number"},
		{Property{Name: "p", Value: json.Number("1e999")}, "expected a string, a number"},
	} {
		_, err := NewProperties([]Property{test.property})
		if (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%+v: expected %q, found %v", test.property, test.fault, err)
		}
	}
	if _, err := NewProperties(make([]Property, MaxProperties+1)); err == nil {
		t.Error("expected a bound on the number of properties")
	}
	// An invalid property is an error even if it is not used.
	if _, err := NewProperties([]Property{{Name: "p", Value: "a"}, {Name: "p"}}); err == nil {
		t.Error("expected that all properties are checked")
	}
	properties := mustProperties(t, Property{Name: "p", Value: "first"}, Property{Name: "q", Value: 1}, Property{Name: "p", Value: "second"})
	if first, _ := properties.Get("p"); first.Value != "first" || len(properties.All()) != 2 || !mustParse(t, "p == first AND q == 1").Satisfied(properties) {
		t.Errorf("expected that the first of a name wins, found %+v", properties.All())
	}
}

func TestFailed(t *testing.T) {
	constraints := mustParse(t, "a == 1", "b == 1 OR c == 1")
	for want, properties := range map[int]*Properties{
		0: nil, 1: mustProperties(t, Property{Name: "a", Value: 1}), -1: mustProperties(t, Property{Name: "a", Value: 1}, Property{Name: "c", Value: 1}),
	} {
		if found := constraints.Failed(properties); found != want {
			t.Errorf("%+v: expected %d, found %d", properties.All(), want, found)
		}
	}
	if names := constraints.Names(); !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("expected a, b and c, found %v", names)
	}
}

func TestSatisfied_DoesNotAllocate(t *testing.T) {
	constraints := mustParse(t, `l in "x,y,b" AND s == b AND s != a`, "v in [1.0.0,2.0.0)", "n > 1 AND (n < 3 OR o == true)", "u in [1.0.0,INFINITY)", "o != false", "l != z",
		`s in "nothing" OR missing == 1 OR s == "a b"`)
	properties := mustProperties(t, Property{Name: "l", Value: "a, b,c", Type: List}, Property{Name: "s", Value: "a b, b"},
		Property{Name: "v", Value: "1.5.0", Type: Version}, Property{Name: "n", Value: 2}, Property{Name: "o", Value: true}, Property{Name: "u", Value: "2.0.0-rc.1"})
	if !constraints.Satisfied(properties) {
		t.Fatalf("expression %d is not satisfied", constraints.Failed(properties)+1)
	}
	if allocations := testing.AllocsPerRun(100, func() { constraints.Satisfied(properties) }); allocations != 0 {
		t.Errorf("evaluating allocates %v times", allocations)
	}
}

func TestRequires(t *testing.T) {
	for _, test := range []struct {
		expressions []string
		want        string
	}{
		{nil, "[[]]"},
		{[]string{"()"}, "[[]]"},
		{[]string{"a == b", "c > 1"}, "[[{a [s:b]} {c []}]]"},
		{[]string{"a == b OR c == 1"}, "[[{a [s:b]}] [{c [n:1 b:true s:1]}]]"},
		{[]string{`a in "x, y" AND (b == 1.5 OR c in [1.0.0,2.0.0))`}, "[[{a [s:x s:y]} {b [n:1.5 s:1.5]}] [{a [s:x s:y]} {c []}]]"},
		{[]string{"a == b OR "}, "[[]]"},
		{[]string{"a != b"}, "[[{a []}]]"},
		{[]string{"a =< 3"}, "[[{a [n:3]}]]"},
	} {
		if found := fmt.Sprint(mustParse(t, test.expressions...).Requires()); found != test.want {
			t.Errorf("%q: expected %s, found %s", test.expressions, test.want, found)
		}
	}
	// Too many branches are reduced to what they have in common.
	var alternatives []string
	for i := range maxBranches + 1 {
		alternatives = append(alternatives, fmt.Sprintf("(ns == n%d AND x%d == 1)", i, i))
	}
	branches := mustParse(t, strings.Join(alternatives, " OR ")).Requires()
	if len(branches) != 1 || len(branches[0]) != 1 || branches[0][0].Name != "ns" || len(branches[0][0].Keys) != maxBranches+1 {
		t.Errorf("expected one branch with all namespaces, found %v", branches)
	}
	// And so are those of a product.
	choices := make([]string, 10)
	for i := range choices {
		choices[i] = "a == 1 OR b == 2"
	}
	if branches := mustParse(t, choices...).Requires(); len(branches) > maxBranches {
		t.Errorf("expected at most %d branches, found %d", maxBranches, len(branches))
	}
}

func TestLint(t *testing.T) {
	for expression, want := range map[string][]Code{
		"a == 1":                               nil,
		"a == 5":                               nil,
		"":                                     nil,
		"   ":                                  nil,
		"a == ORANGE OR b < 01":                nil,
		"a != b":                               {NotEqualMissing},
		`a == "true"`:                          {QuotedValue},
		`a == "5"`:                             {QuotedValue},
		`a == "5g"`:                            nil,
		"a == 7.0":                             {NumberAsText},
		"a == 01":                              {NumberAsText},
		"()":                                   {MissingOperand},
		"a == 1 AND ":                          {MissingOperand},
		"(a == 1 OR )":                         {MissingOperand},
		"a =< 1":                               {ReversedOperator},
		"os!=windows":                          {NameWithMark},
		"!a == 1":                              {NameWithMark},
		`a in "'x','y'"`:                       {SingleQuotes},
		"a > 1 AND a < 1":                      {Unsatisfiable},
		kubernetesVersion + " == 1.33":         {KubernetesVersion},
		kubernetesVersion + " == v1.33.1+k3s1": nil,
		kubernetesVersion + " in [1.20.0,1.30.0)":         {KubernetesVersion},
		kubernetesVersion + ` in "v1.33.1,v1.33.2"`:       nil,
		"a == 1 AND (b != 1 OR c =< 1) AND d == \"true\"": {NotEqualMissing, ReversedOperator, QuotedValue},
	} {
		var codes []Code
		for _, warning := range Lint([]string{expression}) {
			codes = append(codes, warning.Code)
			if (warning.Position == 0) != (warning.Code == Unsatisfiable) || !strings.HasSuffix(warning.Message, ".") {
				t.Errorf("%q: %+v", expression, warning)
			}
		}
		if !slices.Equal(codes, want) {
			t.Errorf("%q: expected %v, found %v", expression, want, codes)
		}
	}
	found := Lint([]string{"a == 1", "b == 1 AND a != 2"})
	if len(found) != 1 || found[0].Expression != 1 || found[0].Position != 12 {
		t.Errorf("expected a warning about character 12 of the second expression, found %+v", found)
	}
}

func BenchmarkSatisfied(b *testing.B) {
	constraints := mustParse(b, "purpose == camera AND openhorizon.memory >= 2048", `country in "de,fr,it,es" OR test == true`)
	properties := []Property{{Name: "purpose", Value: "camera"}, {Name: "openhorizon.memory", Value: 4096}, {Name: "country", Value: "fr"}}
	for i := range 20 {
		properties = append(properties, Property{Name: fmt.Sprintf("other%d", i), Value: "x"})
	}
	node := mustProperties(b, properties...)
	b.ReportAllocs()
	for b.Loop() {
		constraints.Satisfied(node)
	}
}
