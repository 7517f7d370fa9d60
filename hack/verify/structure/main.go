// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command structure checks rules of docs/design/style.md about the structure of Go code. It reads names of Go files, one per line, from standard
// input, prints the violations, and exits with 1 if a rule has more than its limit.
package main

import (
	"bufio"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

const (
	// methodFiles is the number of files with methods of one type from which on the type is a violation.
	methodFiles = 6
	// packageFiles is the largest number of files of a package that is not a violation. Tests do not count.
	packageFiles = 15
)

// rule is a rule with the number of violations that are allowed. A limit above 0 is the number of violations that are left from before the rule: it
// only decreases.
type rule struct {
	name    string
	limit   int
	instead string
}

var rules = []rule{
	{"if", 0, `put the statement before the if: only ":=" and "err =" belong into it`},
	{"methods", 0, fmt.Sprintf("a type has methods in at most %d files: split the type", methodFiles-1)},
	{"package", 0, fmt.Sprintf("a package has at most %d files without tests: split the package", packageFiles)},
	{"names", 0, fmt.Sprintf("at most %d packages have a type of the same name: choose one that says what it is in its package", namePackages)},
	{"variants", 0, "a function for Windows or other systems has the name of the one for Linux or Unix, since the same code calls both"},
}

// violation is a place that violates a rule.
type violation struct{ rule, place string }

func main() {
	var files []string
	for names := bufio.NewScanner(os.Stdin); names.Scan(); {
		files = append(files, names.Text())
	}
	found, err := check(files, os.ReadFile)
	if err != nil {
		fmt.Fprintln(os.Stderr, "structure:", err)
		os.Exit(1)
	}
	if !report(os.Stdout, rules, found) {
		os.Exit(1)
	}
}

// report prints the violations of the rules that have more than their limits, and reports whether none has.
func report(out io.Writer, rules []rule, found []violation) bool {
	passed := true
	for _, r := range rules {
		places := slices.Clone(found)
		places = slices.DeleteFunc(places, func(v violation) bool { return v.rule != r.name })
		fmt.Fprintf(out, "%-8s %3d (limit %d)\n", r.name, len(places), r.limit)
		if len(places) <= r.limit {
			continue
		}
		passed = false
		for _, v := range places {
			fmt.Fprintf(out, "  %s\n", v.place)
		}
		fmt.Fprintf(out, "  → %s\n", r.instead)
	}
	return passed
}

// check returns the violations of all rules in files, sorted by place. Generated files have none.
func check(files []string, read func(string) ([]byte, error)) ([]violation, error) {
	var found []violation
	methods := map[string][]string{} // files by package and type
	packages := map[string]int{}     // number of files by folder
	names, systems := typeNames{}, variants{}
	for _, file := range files {
		source, err := read(file)
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		syntax, err := parser.ParseFile(set, file, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if ast.IsGenerated(syntax) {
			continue
		}
		ast.Inspect(syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.IfStmt); ok && s.Init != nil && !allowedInit(s.Init) {
				found = append(found, violation{"if", set.Position(s.Pos()).String()})
			}
			return true
		})
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		packages[path.Dir(file)]++
		names.add(file, syntax)
		systems.add(file, syntax, func(n ast.Node) string { return set.Position(n.Pos()).String() })
		for _, d := range syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				t := path.Dir(file) + "." + receiver(f.Recv.List[0].Type)
				if !slices.Contains(methods[t], file) {
					methods[t] = append(methods[t], file)
				}
			}
		}
	}
	for t, in := range methods {
		if len(in) >= methodFiles {
			found = append(found, violation{"methods", fmt.Sprintf("%s has methods in %d files", t, len(in))})
		}
	}
	for folder, n := range packages {
		if n > packageFiles {
			found = append(found, violation{"package", fmt.Sprintf("%s has %d files", folder, n)})
		}
	}
	found = append(append(found, names.violations()...), systems.violations()...)
	slices.SortFunc(found, func(a, b violation) int { return cmp.Or(cmp.Compare(a.rule, b.rule), cmp.Compare(a.place, b.place)) })
	return found, nil
}

// allowedInit reports whether a statement may stand before the condition of an if.
func allowedInit(s ast.Stmt) bool {
	a, ok := s.(*ast.AssignStmt)
	if !ok {
		return false
	}
	if a.Tok == token.DEFINE {
		return true
	}
	name, ok := a.Lhs[0].(*ast.Ident)
	return ok && len(a.Lhs) == 1 && name.Name == "err"
}

// receiver returns the name of the type of a receiver.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}
