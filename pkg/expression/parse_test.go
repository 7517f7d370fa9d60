// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// doubling returns an expression with a type that doubles with each of k macros: sixteen of them would take hours to check.
func doubling(k int) string {
	text, last := "", "1"
	for i := range k {
		text += fmt.Sprintf("[{%s: %s}].map(a%d, ", last, last, i)
		last = fmt.Sprint("a", i)
	}
	return text + last + strings.Repeat(")", k) + ".size() > 0"
}

func TestCompile_TimeIsBounded(t *testing.T) {
	env, err := NewEnvironment(nil, cel.Variable("x", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	nested := func(begin, inner, end string, k int) string {
		return strings.Repeat(begin, k) + inner + strings.Repeat(end, k)
	}
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"macros that double":           {doubling(9), false},
		"more of them":                 {doubling(16), false},
		"many of them":                 {doubling(80), false},
		"a few":                        {doubling(3), true},
		"macros that copy":             {"optional.of(1)" + strings.Repeat(".optMap(a, a)", 300) + " == optional.of(1)", false},
		"others that copy":             {"optional.of(1)" + strings.Repeat(".optFlatMap(a, optional.of(a))", 30) + " == optional.of(1)", false},
		"a few that copy":              {"optional.of(1)" + strings.Repeat(".optMap(a, a)", 3) + " == optional.of(1)", true},
		"much that is copied":          {"optional.of([" + strings.Repeat("1, ", 1000) + "1].size())" + strings.Repeat(".optMap(a, a)", 6) + " == optional.of(1)", false},
		"deep lists":                   {nested("[", "1", "]", 200) + ".size() > 0", false},
		"deep maps":                    {nested("{1: ", "1", "}", 200) + ".size() > 0", false},
		"deep optionals":               {nested("optional.of(", "1", ")", 100) + ".hasValue()", false},
		"deep fields":                  {"x" + strings.Repeat(".?a", 20) + ".hasValue()", true},
		"long lists of deep ones":      {"[" + strings.Repeat(nested("[", "1", "]", 31)+",", 60) + "].size() > 0", false},
		"a long list":                  {"[" + strings.Repeat("1, ", 1300) + "1].size() > 0", true},
		"a long sum":                   {strings.Repeat("x.a + ", 200) + "1 == 1", true},
		"conditions of a usual object": {`x.?status.?conditions.orValue([]).exists(c, c.type in ["A", "B"] && c.status == "True") && x.spec.all(k, [k].map(v, {v: [v]}).size() > 0)`, true},
	} {
		t.Run(name, func(t *testing.T) {
			// Programs that only check must apply the limit, too.
			type checker interface {
				Check(text string, kind types.Kind) (fault, unknown error)
			}
			if check, ok := any(env).(checker); ok && len(c.text) < 200 {
				if fault, _ := check.Check(c.text, types.BoolKind); (fault == nil) != c.ok {
					t.Errorf("it is checked: %v, want %v", fault, c.ok)
				}
			}
			if _, err := env.Compile(c.text); (err == nil) != c.ok {
				t.Errorf("it has compiled: %v, want %v", err, c.ok)
			} else if err != nil && !strings.HasPrefix(err.Error(), "expected ") {
				t.Errorf("the error says %v", err)
			}
		})
	}
}
