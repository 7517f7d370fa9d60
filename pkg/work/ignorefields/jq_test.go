// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ignorefields

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/itchyny/gojq"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/work/status"
)

var expressions = []string{
	".spec.replicas", `.spec["replicas"]`, ".spec | .replicas", ".spec.template.spec.containers[].image", `.spec.template.spec.containers[] | select(.name == "a") | .image`,
	`.spec.template.spec.containers[] | select(.name == "a" or .name != "b")`, ".spec.template.spec.containers[0, 2]", ".spec.template.spec.containers[-1], .spec.template.spec.containers[2]",
	".. | select(type == \"object\" and has(\"image\")) | .image", "..|.image?", ".none", ".none.deep", ".none[]?", ".spec.replicas, .metadata.labels", `first(.spec.template.spec.containers[])`,
	`.spec.template.spec.containers[] | select(.name | startswith("a") | not) | .name`, `if .spec.replicas > 2 then .spec.replicas else .metadata.labels end`, "empty", "(.none // .spec).replicas",
	`.metadata.labels["a.b/c"]`, `.metadata.labels."~"`, `.spec.template.spec.containers | select(any(.[]; .name == "a")) | .[1]`, ".spec.template.spec.containers[] | select(.name | length == 1) | .image # all",
	".spec.template.spec.containers[1], .spec.template.spec.containers[1].image, .spec.template.spec.containers[0].name",
}

// removeJQ removes the same fields as del().
func TestRemoveJQ_MatchesDel(t *testing.T) {
	for _, expression := range expressions {
		compareWithDel(t, expression, object(t, deployment).Object)
	}
}

func compareWithDel(t *testing.T, expression string, object map[string]any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	query, err := gojq.Parse(expression)
	if err != nil || checkQuery(query) != nil {
		return
	}
	code, err := gojq.Compile(&gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: "del", Args: []*gojq.Query{query}}}})
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	before := numbers(object)
	want, _ := code.RunWithContext(ctx, before).Next()
	err = removeJQ(ctx, object, expression)
	if wantErr, failed := want.(error); failed || ctx.Err() != nil {
		if err == nil {
			t.Errorf("%s: no error, del has %v", expression, wantErr)
		}
		return
	}
	if _, ok := want.(map[string]any); !ok {
		if err == nil {
			t.Errorf("%s: no error, del leaves %v", expression, want)
		}
		return
	}
	if err != nil || !reflect.DeepEqual(numbers(object), want) {
		t.Errorf("%s: %v\ngot  %v\nwant %v", expression, err, object, want)
	}
	// The remaining values must have the types of an object.
	(&unstructured.Unstructured{Object: object}).DeepCopy()
}

func TestPrepare_JQ(t *testing.T) {
	for name, test := range map[string]struct{ expression, err string }{
		"W037: no expression": {".spec | | .replicas", "failed to parse jq expression: unexpected token \"|\""},
		"an end":              {".spec) | (.replicas", "failed to parse jq expression: unexpected token \")\""},
		"nothing":             {"", "expected a path, got an empty expression"},
		"only a remark":       {"# .spec", "expected a path, got an empty expression"},
		"the whole":           {".", "expected a path to a field, got one to the whole object"},
		"a value":             {".spec | length", "jq expression returned error: invalid path against: number (2)"},
		"not iterable":        {".spec.replicas[]", "jq expression returned error: cannot iterate over: number (3)"},
		"a function":          {"range(1000000000)", "expected one of the functions all, any,"},
		"arguments":           {"select(.a; .b)", "expected one of the functions all, any,"},
		"an operator":         {".spec + .spec", "expected a path, got the operator +"},
		"an update":           {".spec |= .metadata", "expected a path, got the operator |="},
		"a definition":        {"def f: f; f", "expected a path, got imports, definitions or variables"},
		"a variable":          {".spec as $x | $x", "expected a path, got imports, definitions or variables"},
		"the environment":     {"$ENV.HOME", "expected one of the functions all, any,"},
		"an import":           {`import "a" as a; .a`, "expected a path, got imports, definitions or variables"},
		"a list":              {"[.spec]", "expected a path such as .spec.containers[].image, got an expression that computes a value"},
		"a slice":             {".spec.template.spec.containers[0:1]", "expected single items of lists such as [0], got a slice"},
		"a text":              {`.["\(.spec)"]`, "expected a plain text, got one with an expression in it"},
		"inside":              {`select(if .a then first(. * 5) else 1 end)`, "expected a path, got the operator *"},
		"long":                {strings.Repeat(".a", 1000), "expected an expression of at most 1024 bytes, got 2000"},
		"the name":            {".metadata.name", "expected fields without which an object is still the same"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Prepare(object(t, deployment), present(workv1.IgnoreField{JQPathExpressions: []string{test.expression}}))
			if err == nil || !strings.Contains(err.Error(), test.err) || !errors.Is(err, status.ErrIgnoreFields) {
				t.Errorf("got %v\nwant %s", err, test.err)
			}
		})
	}
	p, err := Prepare(object(t, deployment), present(workv1.IgnoreField{JQPathExpressions: expressions[:5]}))
	if err != nil || strings.Contains(fmt.Sprint(p.Reduced), "replicas") || !strings.Contains(fmt.Sprint(p.Whole), "replicas:3") {
		t.Errorf("got %v, %v", p, err)
	}
}

// An expression that would run forever, or use all memory, is stopped within a second, and uses little memory.
func TestPrepare_JQIsBounded(t *testing.T) {
	var items []any
	for range 20_000 {
		items = append(items, map[string]any{"a": "b", "c": map[string]any{"d": "e"}})
	}
	manifest := object(t, deployment)
	manifest.Object["items"] = items
	for name, expression := range map[string]string{
		"doubling":        strings.Repeat("(.,.)|", 100) + ".a",
		"nothing, often":  strings.Repeat("(.,.)|", 100) + "empty",
		"many paths":      ".items[] | (.a, .c)",
		"all below all":   "..|..|..|..|..|..|..|select(.==1)",
		"deep conditions": strings.Repeat("select(", 50) + strings.Repeat("(.,.)|", 50) + "false" + strings.Repeat(")", 50),
		"all":             `select(all(..|..|..|..|..|..|. != 1)) | .a`,
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Prepare(manifest, present(workv1.IgnoreField{JQPathExpressions: []string{expression, expression, expression}}))
			runtime.ReadMemStats(&after)
			if err == nil || !errors.Is(err, status.ErrIgnoreFields) || (!strings.Contains(err.Error(), "timed out after 1s") && !strings.Contains(err.Error(), "at most 10000 fields")) {
				t.Errorf("got %v", err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 1<<30 {
				t.Errorf("%d MiB were allocated", used>>20)
			}
		})
	}
}
