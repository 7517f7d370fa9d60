// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wiring compares what each program is assembled from with golden files: admission plugins, routes, controllers, tasks and checks.
//
// The lists are read from the object that the program would run, never from the table that it is assembled from: so they show what was left
// out, and what has another's name. After an intended change, go test ./test/wiring -update rewrites them.
package wiring

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
)

const (
	updateCommand = "go test ./test/wiring -update"
	header        = "# Generated from the assembled program by: " + updateCommand + ". DO NOT EDIT."
	module        = "github.com/clusterhub/clusterhub/"
	unset         = "UNSET"
)

var update = flag.Bool("update", false, "Rewrite the golden files.")

// TestMain keeps the logs of programs out of the diffs.
func TestMain(m *testing.M) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// compare fails with a diff if the lines are not those of a golden file.
func compare(t *testing.T, name string, lines []string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	found := append([]string{header}, lines...)
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(found, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: make it with %s", err, updateCommand)
	}
	expected := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if changes := diff(expected, found); len(changes) > 0 {
		t.Errorf("the program is not assembled as %s says (- expected, + found):\n%s\nIf this change is intended: %s", path, strings.Join(changes, "\n"), updateCommand)
	}
}

// diff returns the lines that are only in expected, after "-", and only in found, after "+", by a longest common subsequence. A diff of
// package cmp cuts lines into what they have in common.
func diff(expected, found []string) (changes []string) {
	common := make([][]int, len(expected)+1)
	for i := range common {
		common[i] = make([]int, len(found)+1)
	}
	for i, e := range slices.Backward(expected) {
		for j, f := range slices.Backward(found) {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if e == f {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	for i, j := 0, 0; i < len(expected) || j < len(found); {
		switch {
		case i < len(expected) && j < len(found) && expected[i] == found[j]:
			i, j = i+1, j+1
		case j == len(found) || i < len(expected) && common[i+1][j] >= common[i][j+1]:
			changes = append(changes, fmt.Sprintf("line %d: - %s", i+1, expected[i]))
			i++
		default:
			changes = append(changes, fmt.Sprintf("line %d: + %s", i+1, found[j]))
			j++
		}
	}
	return changes
}

// typeName returns the package and the name of a value's type, and of a function where it is.
func typeName(v reflect.Value) string {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch {
	case !v.IsValid(), v.Kind() == reflect.Pointer && v.IsNil(), v.Kind() == reflect.Func && v.IsNil():
		return unset
	case v.Kind() == reflect.Func:
		return functionName(runtime.FuncForPC(v.Pointer()))
	}
	t := v.Type()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return strings.TrimPrefix(t.PkgPath(), module) + "." + t.Name()
}

var version = regexp.MustCompile(`@v[^/]+`)

// functionName returns the name of a method, and of another function its file: the name of a closure depends on what the compiler inlines.
func functionName(f *runtime.Func) string {
	if method, ok := strings.CutSuffix(f.Name(), "-fm"); ok {
		return strings.TrimPrefix(method, module)
	}
	file, _ := f.FileLine(f.Entry())
	// Without -trimpath, files are those of a machine.
	_, this, _, _ := runtime.Caller(0)
	file = strings.TrimPrefix(file, strings.TrimSuffix(this, "test/wiring/programs_golden_test.go"))
	if _, inCache, ok := strings.Cut(file, "/pkg/mod/"); ok {
		file = inCache
	}
	return version.ReplaceAllString(file, "")
}

// goroutines returns the stacks of all goroutines, with the functions that created them.
func goroutines(t *testing.T) string {
	t.Helper()
	var stacks strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&stacks, 2); err != nil {
		t.Fatal(err)
	}
	return stacks.String()
}

// indirect returns what an interface or pointer leads to.
func indirect(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v
}

// nested returns the type of a value and, if it wraps a value of an interface, the type of that in brackets.
func nested(v reflect.Value, of reflect.Type) string {
	name, inner := typeName(v), indirect(v)
	if inner.Kind() != reflect.Struct {
		return name
	}
	for i := range inner.NumField() {
		if inner.Type().Field(i).Type == of {
			name += "(" + nested(inner.Field(i), of) + ")"
		}
	}
	return name
}

// shipped returns the arguments of the last container of a Deployment in manifests.
func shipped(t *testing.T, objects []*unstructured.Unstructured, deployment string) []string {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != "Deployment" || o.GetName() != deployment {
			continue
		}
		containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) == 0 {
			t.Fatalf("the Deployment %s has no containers: %v", deployment, err)
		}
		args, _, err := unstructured.NestedStringSlice(containers[len(containers)-1].(map[string]any), "args")
		if err != nil {
			t.Fatal(err)
		}
		return args
	}
	t.Fatalf("no manifest has a Deployment %s", deployment)
	return nil
}

// parse sets flags.
func parse(t *testing.T, flags cliflag.NamedFlagSets, args ...string) {
	t.Helper()
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, fs := range flags.FlagSets {
		all.AddFlagSet(fs)
	}
	if err := all.Parse(args); err != nil {
		t.Fatal(err)
	}
}
