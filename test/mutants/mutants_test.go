// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clusterhub/clusterhub/test/await"
)

const root = "../.."

func TestFaults_ApplyToTheTree(t *testing.T) {
	faults, err := load(filepath.Join(root, faultsFile))
	if err != nil {
		t.Fatal(err)
	}
	if len(faults) < 40 {
		t.Errorf("there are %d faults, want 40 at least", len(faults))
	}
	names := map[string]bool{}
	for _, f := range faults {
		if f.Name == "" || names[f.Name] || f.Why == "" || len(f.Edits) == 0 {
			t.Errorf("fault %q has no name, that of another, no reason, or no edit", f.Name)
		}
		names[f.Name] = true
		if _, _, err := f.changed(root); err != nil {
			t.Error(err)
		}
		for _, folder := range append(f.Packages, filepath.Join("test/e2e", f.E2E)) {
			if _, err := os.Stat(filepath.Join(root, folder)); err != nil {
				t.Errorf("fault %s: %v", f.Name, err)
			}
		}
	}
}

func TestPlant_IsReverted(t *testing.T) {
	dir := t.TempDir()
	file, made := filepath.Join(dir, "a.go"), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := os.WriteFile(file, []byte("one two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, made, made); err != nil {
		t.Fatal(err)
	}
	f := fault{Name: "f", Edits: []edit{{File: "a.go", Old: "one", New: "three"}, {File: "a.go", Old: " two"}}}
	revert, err := f.plant(dir)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(content string) {
		t.Helper()
		if got, err := os.ReadFile(file); err != nil || string(got) != content {
			t.Errorf("the file has %q, want %q: %v", got, content, err)
		}
	}
	expect("three")
	if err := revert(); err != nil {
		t.Fatal(err)
	}
	expect("one two")
	if info, err := os.Stat(file); err != nil || !info.ModTime().Equal(made) {
		t.Errorf("the file is of %v, want %v: %v", info.ModTime(), made, err)
	}
}

func TestPlant_NamesInapplicableFault(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("one one"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]edit{
		"no file":           {File: "b.go", Old: "one"},
		"not there":         {File: "a.go", Old: "two"},
		"there twice":       {File: "a.go", Old: "one"},
		"without old text":  {File: "a.go", New: "one"},
		"without an effect": {File: "a.go", Old: "one one", New: "one one"},
	} {
		f := fault{Name: "the-fault", Edits: []edit{e}}
		if _, err := f.plant(dir); err == nil || !strings.Contains(err.Error(), "the-fault") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFirstFailure(t *testing.T) {
	for name, test := range map[string]struct{ in, failure, err string }{
		"all pass": {in: `{"Action":"pass","Package":"m/p","Test":"TestA"}{"Action":"pass","Package":"m/p"}`},
		"a test": {
			in:      `{"Action":"output","Package":"m/p","Output":"x"}{"Action":"fail","Package":"m/p","Test":"TestA/b"}{"Action":"fail","Package":"m/p","Test":"TestA"}`,
			failure: "TestA/b of m/p",
		},
		"a package": {in: `{"Action":"fail","Package":"m/p"}`, failure: "the package of m/p"},
		"a timeout": {
			in:      `{"Action":"output","Package":"m/p","Output":"panic: test timed out after 1s\n"}{"Action":"fail","Package":"m/p","Test":"TestA"}`,
			failure: "TestA of m/p (timed out)",
		},
		"a wait to its limit": {in: `{"Action":"fail","Package":"m/p","Test":"TestA","Elapsed":180.2}`, failure: "TestA of m/p (timed out)"},
		"no compilation": {
			in:  `{"Action":"build-output","ImportPath":"m/p","Output":"a.go:1: undefined: x"}{"Action":"fail","Package":"m/p","FailedBuild":"m/p"}`,
			err: "undefined: x",
		},
	} {
		failed, _, err := firstFailure(strings.NewReader(test.in))
		got := ""
		if failed != nil {
			got = failed.String()
		}
		if got != test.failure || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %q, %v; want %q, %q", name, got, err, test.failure, test.err)
		}
	}
}

// TestFirst_RequiresPassWithoutFault runs go test in a module whose test fails with a fault, always, once, or on a slow machine.
func TestFirst_RequiresPassWithoutFault(t *testing.T) {
	// The two files are outside of the module, so that the cache of go test does not know them.
	dir, once, slow := t.TempDir(), filepath.Join(t.TempDir(), "once"), filepath.Join(t.TempDir(), "slow")
	write := func(path, content string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "go.mod"), "module m\n\ngo 1.21\n")
	write(filepath.Join(dir, "caught/a_test.go"), `package caught

import (
	"os"
	"testing"
)

const faulty = false

func TestA(t *testing.T) {
	if _, err := os.Stat("`+slow+`"); err == nil {
		panic("test timed out after 1s")
	}
	if os.Remove("`+once+`") == nil || faulty {
		t.Error("it is faulty")
	}
}
`)
	write(filepath.Join(dir, "red/a_test.go"), "package red\n\nimport \"testing\"\n\nconst faulty = false\n\nfunc TestA(t *testing.T) { t.Error(faulty) }\n")
	r := &runner{tree: &tree{root: dir, original: dir}, timeout: await.Limit}
	first := func(folder, faulty string) (string, error) {
		t.Helper()
		f := fault{Name: "f", Edits: []edit{{File: folder + "/a_test.go", Old: "faulty = false", New: "faulty = " + faulty}}}
		revert, err := f.plant(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := revert(); err != nil {
				t.Error(err)
			}
		}()
		return r.first(t.Context(), &f, revert, []string{folder}, &cost{})
	}
	if test, err := first("caught", "true"); test != "TestA of caught" || err != nil {
		t.Errorf("the fault is caught by %q: %v", test, err)
	}
	if test, err := first("red", "true"); test != "" || !errors.Is(err, errWithoutFault) || !strings.HasSuffix(err.Error(), "TestA of red") {
		t.Errorf("a fault is caught by %q, which fails without it, too: %v", test, err)
	}
	write(once, "")
	if test, err := first("caught", "0 > 1"); test != "" || err == nil || errors.Is(err, errWithoutFault) {
		t.Errorf("a fault is caught by %q, which passes with it: %v", test, err)
	}
	write(slow, "")
	if test, err := first("caught", "true"); test != "" || !errors.Is(err, errWithoutFault) {
		t.Errorf("a fault is caught by %q, which fails on a slow machine: %v", test, err)
	}
}

func TestCopyTree_MatchesGit(t *testing.T) {
	// The copy is made in a repository of its own: that of the product has a copy that mutants may be using.
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "git", "-C", dir, "init", "--quiet").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, content := range map[string]string{".gitignore": "/_output/\n", "go.mod": "module m\n", "a/a.go": "package a\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // what was left of an earlier run goes
		copied, err := copyTree(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(copied.root, "a/a.go")); err != nil || string(got) != "package a\n" {
			t.Errorf("the copy has %q: %v", got, err)
		}
		if _, err := os.Stat(filepath.Join(copied.root, "a/b.go")); err == nil {
			t.Error("the copy has a file that is not in the original")
		}
		for name, content := range map[string]string{"a/a.go": "package b\n", "a/b.go": "package a\n"} {
			if err := os.WriteFile(filepath.Join(copied.root, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestOwn_AndImporters(t *testing.T) {
	r := &runner{packages: []goPackage{
		{ImportPath: "m/pkg/a", Dir: "pkg/a", TestGoFiles: []string{"a_test.go"}},
		{ImportPath: "m/pkg/b", Dir: "pkg/b", Imports: []string{"m/pkg/a"}},
		{ImportPath: "m/pkg/c", Dir: "pkg/c", XTestImports: []string{"m/pkg/a"}, XTestGoFiles: []string{"c_test.go"}},
		{ImportPath: "m/test/e2e/d", Dir: "test/e2e/d", TestImports: []string{"m/pkg/a"}, TestGoFiles: []string{"d_test.go"}},
	}}
	for name, test := range map[string]struct {
		fault fault
		want  string
	}{
		"Go":             {fault{Edits: []edit{{File: "pkg/a/a.go"}}, Packages: []string{"pkg/c"}}, "pkg/a pkg/c"},
		"embedded":       {fault{Edits: []edit{{File: "pkg/a/files/x.yaml"}}}, "pkg/a"},
		"charts":         {fault{Edits: []edit{{File: "artifacts/charts/clusterhub/templates/hub/rbac.yaml"}}}, "hack/charts"},
		"several of one": {fault{Edits: []edit{{File: "pkg/a/a.go"}, {File: "pkg/a/b.go"}}}, "pkg/a"},
	} {
		if got := strings.Join(r.own(&test.fault), " "); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if got := strings.Join(r.importers([]string{"pkg/a"}, false), " "); got != "pkg/b" {
		t.Errorf("pkg/a is imported by %s, want pkg/b", got)
	}
	if got := strings.Join(r.tested(r.importers([]string{"pkg/a"}, true)), " "); got != "pkg/c" {
		t.Errorf("pkg/a is imported by packages with tests %s, want pkg/c", got)
	}
}
