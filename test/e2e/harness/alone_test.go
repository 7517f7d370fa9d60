// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// withHarness lists the folders of the tests that use the harness.
var withHarness = []string{"test/e2e/*", "hack/charts/e2e", "examples/follow-placement"}

// function describes a function in the sources of a folder, and the functions that it refers to.
type function struct {
	folder string
	// refers has the names of functions, FOLDER.NAME, and of methods, FOLDER.().NAME. References in subtests are in subtests only.
	refers, subtests []string
	// parallel reports whether the function calls t.Parallel outside of subtests.
	parallel bool
}

type sources map[string]*function

// readSources reads all functions of the folders, keyed by the names that refer to them. Methods of the same name are merged.
func readSources(t *testing.T) sources {
	t.Helper()
	all := sources{}
	for _, folders := range withHarness {
		for _, file := range Must(filepath.Glob(filepath.Join(Root, folders, "*.go")))(t) {
			folder := filepath.Base(filepath.Dir(file))
			if folder == "harness" && strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, d := range Must(parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution))(t).Decls {
				if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
					name := folder + "." + d.Name.Name
					if d.Recv != nil {
						name = folder + ".()." + d.Name.Name
					}
					if all[name] == nil {
						all[name] = &function{folder: folder}
					}
					all[name].read(d.Body, false)
				}
			}
		}
	}
	return all
}

// read adds the references below a node, which may be in a subtest.
func (f *function) read(node ast.Node, subtest bool) {
	refer := func(names ...string) {
		if subtest {
			f.subtests = append(f.subtests, names...)
		} else {
			f.refers = append(f.refers, names...)
		}
	}
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Run" && !subtest {
				f.read(s, subtest)
				for _, argument := range n.Args {
					f.read(argument, true)
				}
				return false
			}
		case *ast.SelectorExpr:
			f.parallel = f.parallel || n.Sel.Name == "Parallel" && !subtest
			if of, ok := n.X.(*ast.Ident); ok && of.Name == "harness" {
				refer("harness." + n.Sel.Name)
			} else {
				refer(f.folder+".()."+n.Sel.Name, "harness.()."+n.Sel.Name)
			}
			f.read(n.X, subtest)
			return false
		case *ast.KeyValueExpr: // the key is the name of a field
			f.read(n.Value, subtest)
			return false
		case *ast.Ident:
			refer(f.folder + "." + n.Name)
		}
		return true
	})
}

// reaches reports whether a function refers to a different function, directly or through the functions that it refers to.
func (s sources) reaches(from, to string, subtests bool) bool {
	seen := map[string]bool{}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		f := s[queue[0]]
		if queue[0] == to {
			return true
		}
		if f == nil || seen[queue[0]] {
			continue
		}
		seen[queue[0]] = true
		queue = append(queue, f.refers...)
		if subtests {
			queue = append(queue, f.subtests...)
		}
	}
	return false
}

// maxOwners is the maximum number of tests that start their own hubs and plain clusters. Each of these costs four to ten processor seconds.
const maxOwners = 12

// TestAlone_ListsSerialTests verifies that each test with the harness either runs in parallel with others, by calling Hub, OwnHub or
// t.Parallel outside of its subtests, or has a reason in alone; that each test with its own hubs has a reason in owners; and that neither list has
// other entries.
func TestAlone_ListsSerialTests(t *testing.T) {
	all := readSources(t)
	if all["harness.parallel"] == nil || all["harness.OwnHubs"] == nil {
		t.Fatal("the functions of the harness are not found")
	}
	stale, staleOwners := maps.Clone(alone), maps.Clone(owners)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		_, test, _ := strings.Cut(name, ".")
		if !strings.HasPrefix(test, "Test") || test == "TestMain" {
			continue
		}
		delete(stale, f.folder)
		delete(stale, test)
		delete(staleOwners, test)
		byHarness := all.reaches(name, "harness.parallel", false)
		listed := alone[test] != "" || alone[f.folder] != ""
		switch {
		case alone[test] != "" && alone[f.folder] != "":
			t.Errorf("%s is in alone by itself and by its folder", name)
		case byHarness && f.parallel:
			t.Errorf("%s calls t.Parallel, as harness.Hub does", name)
		case !byHarness && !f.parallel && !listed:
			t.Errorf("%s does not run in parallel with others: have it call harness.Hub or t.Parallel, or say in alone why not", name)
		case f.parallel && listed:
			t.Errorf("%s is in alone, and calls t.Parallel", name)
		}
		if own := all.reaches(name, "harness.OwnHubs", true); own && owners[test] == "" {
			t.Errorf("%s starts a hub of its own: say in owners why the shared hub does not do", name)
		} else if !own && owners[test] != "" {
			t.Errorf("%s is in owners, and starts no hub of its own", name)
		}
	}
	if len(owners) > maxOwners {
		t.Errorf("%d tests start hubs of their own, and %d may: use harness.Hub, harness.LendHub or harness.LendCluster", len(owners), maxOwners)
	}
	for name := range stale {
		t.Errorf("alone has %s, which is no test and no folder", name)
	}
	for name := range staleOwners {
		t.Errorf("owners has %s, which is no test", name)
	}
}
