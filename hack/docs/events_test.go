// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reasonAt is which argument of a function is the reason of an event. Eventf of client-go's older events has it one before.
var reasonAt = map[string]int{"Eventf": 3, "Note": 3, "event": 1, "RecordGivingUp": 2}

// source has the source files of the programs.
type source struct {
	files map[string]*ast.File
	// consts are texts by their names, after those of their folders; of what another package has, the name is enough.
	consts map[string]string
	// imports are the names of packages, after the folders that have them.
	imports map[string]bool
}

func parse(t *testing.T) *source {
	t.Helper()
	s := &source{files: map[string]*ast.File{}, consts: map[string]string{}, imports: map[string]bool{}}
	err := filepath.WalkDir(filepath.Join(root, "pkg"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "generated") {
			return err
		}
		s.files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, file := range s.files {
		for _, spec := range file.Imports {
			name, _ := literal(spec.Path)
			name = filepath.Base(name)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			s.imports[filepath.Dir(path)+" "+name] = true
		}
		for _, decl := range file.Decls {
			if group, ok := decl.(*ast.GenDecl); ok && group.Tok == token.CONST {
				for _, spec := range group.Specs {
					for i, value := range spec.(*ast.ValueSpec).Values {
						if text, ok := literal(value); ok {
							name := spec.(*ast.ValueSpec).Names[i].Name
							s.consts[filepath.Dir(path)+" "+name] = text
							if ast.IsExported(name) {
								s.consts[name] = text
							}
						}
					}
				}
			}
		}
	}
	return s
}

func literal(e ast.Expr) (string, bool) {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		text, err := strconv.Unquote(l.Value)
		return text, err == nil
	}
	return "", false
}

// values returns the possible values of an expression in a function: for a variable, the values that are assigned to it there.
func (s *source) values(folder string, e ast.Expr, in *ast.FuncDecl) (all []string) {
	if text, ok := literal(e); ok {
		return []string{text}
	}
	switch e := e.(type) {
	case *ast.SelectorExpr:
		// Fields of variables are none.
		if of, ok := e.X.(*ast.Ident); ok && s.imports[folder+" "+of.Name] {
			if text, ok := s.consts[e.Sel.Name]; ok {
				return []string{text}
			}
		}
	case *ast.Ident:
		if text, ok := s.consts[folder+" "+e.Name]; ok {
			return []string{text}
		}
		ast.Inspect(in, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == len(a.Rhs) {
				for i, left := range a.Lhs {
					if name, ok := left.(*ast.Ident); ok && name.Name == e.Name {
						if value, ok := a.Rhs[i].(*ast.Ident); !ok || value.Name != e.Name {
							all = append(all, s.values(folder, a.Rhs[i], in)...)
						}
					}
				}
			}
			return true
		})
	}
	return all
}

// made are the reasons of events, and the conditions whose changes are events. What has them from its callers is no source itself.
func (s *source) made(t *testing.T) (reasons, conditions map[string]bool) {
	reasons, conditions = map[string]bool{}, map[string]bool{}
	for path, file := range s.files {
		folder := filepath.Dir(path)
		for _, decl := range file.Decls {
			in, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			_, hands := reasonAt[in.Name.Name]
			ast.Inspect(in, func(n ast.Node) bool {
				if of, ok := n.(*ast.CompositeLit); ok && strings.HasSuffix(folder, "pkg/placement/run") {
					if name, ok := of.Type.(*ast.Ident); ok && name.Name == "Event" {
						for _, element := range of.Elts {
							if field, ok := element.(*ast.KeyValueExpr); ok && field.Key.(*ast.Ident).Name == "Reason" {
								add(reasons, s.values(folder, field.Value, in))
							}
						}
					}
				}
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				name := ""
				switch fun := call.Fun.(type) {
				case *ast.SelectorExpr:
					name = fun.Sel.Name
				case *ast.Ident:
					name = fun.Name
				}
				at, known := reasonAt[name]
				switch {
				case (name == "Record" || name == "RecordFault") && len(call.Args) == 6:
					if !strings.HasPrefix(in.Name.Name, "Record") {
						add(conditions, s.values(folder, call.Args[4], in))
					}
				case !known || hands || in.Name.Name == "Record" || len(call.Args) <= at:
				default:
					found := s.values(folder, call.Args[at], in)
					if name == "Eventf" && len(found) == 1 && strings.Contains(found[0], "%") {
						found = s.values(folder, call.Args[2], in)
					}
					if name == "Eventf" && len(found) == 0 && !strings.Contains(path, "placementscheduler") {
						t.Errorf("%s: which reason an event of %s has is not to be seen: use constants", path, in.Name.Name)
					}
					add(reasons, found)
				}
				return true
			})
		}
	}
	return reasons, conditions
}

func add(to map[string]bool, values []string) {
	for _, v := range values {
		to[v] = true
	}
}

var firstCell = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|")

// TestDocs_NameEveryEvent: the page has the events that the programs make, and no others.
func TestDocs_NameEveryEvent(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "events.md"))
	if err != nil {
		t.Fatal(err)
	}
	events, conditions, _ := strings.Cut(string(text), "## Of conditions")
	madeReasons, madeConditions := parse(t).made(t)
	for what, both := range map[string]struct {
		page string
		made map[string]bool
	}{"reasons": {events, madeReasons}, "conditions": {conditions, madeConditions}} {
		told := map[string]bool{}
		for _, found := range firstCell.FindAllStringSubmatch(both.page, -1) {
			told[found[1]] = true
		}
		if len(told) == 0 || !maps.Equal(told, both.made) {
			t.Errorf("docs/events.md has the %s %q, and the programs have %q", what, slices.Sorted(maps.Keys(told)), slices.Sorted(maps.Keys(both.made)))
		}
	}
}
