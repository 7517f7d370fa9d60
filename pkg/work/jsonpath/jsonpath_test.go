// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpath

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/util/jsonpath"
)

const pod = `{"metadata": {"name": "p", "labels": {"a.b/c": "x", "": "empty"}}, "spec": {"containers": [{"name": "a", "ports": [80, 443]}, {"name": "b", "ports": []}]},
	"status": {"phase": "Running", "none": null, "ready": true, "share": 0.5, "conditions": [
		{"type": "Ready", "status": "True", "n": 1}, {"type": "Other", "status": "False", "n": 2}]}}`

func parse(t testing.TB, text string) (object map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

var paths = []string{
	"", ".", "$", "@", ".metadata.name", ".status.phase", ".status.none", ".status.none.x", ".status.missing", ".status.ready", ".status.share", "status", ".status.phase.x",
	`.status.conditions[?(@.type=="Ready")].status`, `.status.conditions[?(@.type!="Ready")].status`, `.status.conditions[?(@.n>1)].type`, `.status.conditions[?(@.n<=1.0)].type`,
	`.status.conditions[?(@.n)].type`, `.status.conditions[?(@.missing)].type`, `.status.conditions[?(@.missing==1)].type`, `.status.conditions[?(@.n=="x")].type`,
	`.status.conditions[?(@.type==@.type)].n`, `.status.conditions[?(@.type~"x")].n`, `.status.conditions[?(@['type','status']=="x")].n`, `.status[?(@.x)]`, `.status.none[?(@.x)]`,
	`.status.conditions[?(@.x[0])].n`, ".status.conditions[0].type", ".status.conditions[-1].type", ".status.conditions[2].type", ".status.conditions[-3].type", ".status.conditions[0:2].type",
	".status.conditions[:1].type", ".status.conditions[1:].type", ".status.conditions[::2].type", ".status.conditions[::0].type", ".status.conditions[::-1].type", ".status.conditions[5:3]", ".status.conditions[1:0]",
	".status.conditions[0:0].type", ".status.conditions[0,1].type", ".status.conditions[*].type", ".status.conditions[0].['type','status']", ".status.phase[0]", ".status.none[0]", ".spec.containers[*].ports[0]",
	".spec.containers[*].ports[*]", ".spec.containers[0].ports[9223372036854775807]", ".spec.containers[0].ports[0:2:9223372036854775807]", ".spec.containers[0].ports[-9223372036854775808]",
	"..name", "..ports", "..", "..['name']", ".spec..ports[*]", ".*.name", ".metadata.labels.*", `.metadata.labels.a\.b/c`, `.metadata.labels['a\.b/c']`, ".metadata.labels['a.b/c']", ".metadata['labels']", ".metadata.labels.",
	`'text'`, `"text"`, "5", "-5", "1.5", "true", "..5", ".metadata 5", "range .x", "end", "x", ".a}{.b", ".a} x {.b", "}{", "{", "[", "[?(", "[?()]", "[?(==)]", "'", `'\`, "[']']", "[,]", "....", ".a..b..c", "\n", "[?(@.x==')')]", "[?('@)]",
}

// The results are those of the library, wherever its results are deterministic.
func TestFind_MatchesLibrary(t *testing.T) {
	for _, path := range paths {
		compareWithLibrary(t, path, parse(t, pod))
	}
}

func compareWithLibrary(t *testing.T, path string, object map[string]any) {
	t.Helper()
	want, wantErr := library(path, object)
	parsed, err := Parse(path)
	var got []any
	if err == nil {
		got, err = parsed.Find(object, NewMeter(Steps))
	}
	switch {
	case errors.Is(wantErr, errOther) || errors.Is(err, ErrCost):
	case (err == nil) != (wantErr == nil):
		t.Errorf("%q: got %v, %v; the library has %v, %v", path, got, err, want, wantErr)
	case err == nil && !sameSet(got, want):
		t.Errorf("%q: got %v, the library has %v", path, got, want)
	}
}

// errOther is for paths that this package rejects, or for which it has a different result.
var errOther = errors.New("other")

func library(path string, object map[string]any) (found []any, err error) {
	defer func() {
		if r := recover(); r != nil {
			found, err = nil, fmt.Errorf("panic: %v", r)
		}
	}()
	finder := jsonpath.New("path").AllowMissingKeys(true)
	if err := finder.Parse("{" + path + "}"); err != nil {
		return nil, err
	}
	parser, _ := jsonpath.Parse("path", "{"+path+"}")
	if len(parser.Root.Nodes) != 1 || check(parser.Root.Nodes[0].(*jsonpath.ListNode).Nodes) != nil {
		return nil, errOther
	}
	results, err := finder.FindResults(object)
	if err != nil {
		return nil, err
	}
	for _, result := range results {
		for _, value := range result {
			if value.Kind() == reflect.Uint8 {
				// a byte of a string
				return nil, errOther
			}
			found = append(found, value.Interface())
		}
	}
	return found, nil
}

// sameSet compares without order, which is random in the library.
func sameSet(a, b []any) bool {
	text := func(values []any) []string {
		texts := make([]string, len(values))
		for i, value := range values {
			texts[i] = fmt.Sprintf("%T %v", value, value)
		}
		slices.Sort(texts)
		return texts
	}
	return slices.Equal(text(a), text(b))
}

func TestFind_IsOrdered(t *testing.T) {
	object := parse(t, `{"d": 4, "b": 2, "a": 1, "c": 3}`)
	path, err := Parse(".*")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if got, err := path.Find(object, NewMeter(Steps)); err != nil || fmt.Sprint(got) != "[1 2 3 4]" {
			t.Fatalf("got %v, %v", got, err)
		}
	}
}

// nested returns nested lists of the given depth.
func nested(depth int) map[string]any {
	var value any = "x"
	for range depth {
		value = []any{value, value}
	}
	return map[string]any{"a": value}
}

// Paths that would take years, or all memory, end at once.
func TestFind_IsBounded(t *testing.T) {
	wide := make([]any, 200_000)
	for i := range wide {
		wide[i] = map[string]any{"x": strings.Repeat("y", 10)}
	}
	long := strings.Repeat("z", 1<<20)
	texts := make([]any, 1000)
	for i := range texts {
		texts[i] = map[string]any{"x": long}
	}
	for name, test := range map[string]struct {
		path   string
		object map[string]any
	}{
		"all below all":       {".a" + strings.Repeat("...*", 8), nested(14)},
		"unions":              {".a" + strings.Repeat("[0,0,0,0]", 100), nested(100)},
		"wildcards":           {".a" + strings.Repeat("[*]", 100), nested(60)},
		"wildcards in unions": {".a" + strings.Repeat("[*,*]", 60), nested(60)},
		"filters":             {".a[?(@..x)]" + strings.Repeat("...*", 8), map[string]any{"a": wide}},
		"long texts":          {".a[?(@.x==@.x)]", map[string]any{"a": slices.Repeat(texts, 200)}},
		"a wide object":       {strings.Repeat("...*", 250), map[string]any{"a": wide}},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := Parse(test.path)
			if err != nil {
				t.Fatal(err)
			}
			if found, err := path.Find(test.object, NewMeter(Steps)); !errors.Is(err, ErrCost) {
				t.Errorf("found %d values, %v", len(found), err)
			}
		})
	}
}

func TestParse_IsBounded(t *testing.T) {
	for name, path := range map[string]string{
		"long":    strings.Repeat(".a", MaxPath),
		"several": ".a}{.b",
		"text":    ".a} and {.b",
		"a loop":  "range .a[*]}{.b}{end",
		"a word":  ".a[?(@.b==end)]",
	} {
		if _, err := Parse(path); err == nil {
			t.Errorf("%s: %q was taken", name, path)
		}
	}
}

func FuzzFind(f *testing.F) {
	for _, path := range paths {
		f.Add(path, pod)
	}
	f.Fuzz(func(t *testing.T, path, text string) {
		var object map[string]any
		if len(text) > 400 || len(path) > 60 || json.Unmarshal([]byte(text), &object) != nil {
			return
		}
		compareWithLibrary(t, path, object)
	})
}
