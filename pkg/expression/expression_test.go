// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// An environment has the given names, and their costs are counted.
func TestEnvironment(t *testing.T) {
	env, err := NewEnvironment(map[string]Cost{"dear_int": func(args []ref.Val, _ ref.Val) uint64 { return uint64(args[0].(types.Int)) }},
		cel.Variable("x", cel.IntType),
		cel.Function("dear", cel.Overload("dear_int", []*cel.Type{cel.IntType}, cel.IntType, cel.UnaryBinding(func(v ref.Val) ref.Val { return v }))))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"dear(x) == x":     "true",
		"dear(1000 * x)":   "5000",
		"dear(1000001)":    "error",
		"y":                "error",
		`"ab".find("b")`:   "b",
		`quantity("1Gi")`:  "1Gi",
		`[x, x].map(y, y)`: "2",
		"[" + strings.Repeat("x,", 500) + "x].all(a, [x].all(b, dear(5000) == 5000))":           "error",
		`"` + strings.Repeat("a", 2000) + `".replace("a", "` + strings.Repeat("b", 2000) + `")`: "error",
	} {
		got := "error"
		program, err := env.Compile(text)
		if err == nil {
			value, cost, err := program.Eval(t.Context(), map[string]any{"x": 5})
			if err == nil {
				got = fmt.Sprint(value.Value())
				if list, ok := value.Value().([]ref.Val); ok {
					got = fmt.Sprint(len(list))
				}
			}
			if (err == nil) != (cost <= MaxCost) && !strings.Contains(fmt.Sprint(err), "would be longer") {
				t.Errorf("%.100s has cost %d, %v", text, cost, err)
			}
			if program.AST() == nil {
				t.Errorf("%.100s has no AST", text)
			}
		}
		if got != want {
			t.Errorf("%.100s is %s, want %s", text, got, want)
		}
	}
}
