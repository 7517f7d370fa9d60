// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ids returns the constants of type ID of all findings, with their values.
func ids(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("the files of pkg/inspect: %q, %v", files, err)
	}
	all := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			of, _ := spec.Type.(*ast.Ident)
			if other, ok := spec.Type.(*ast.SelectorExpr); ok {
				of = other.Sel
			}
			if of == nil || of.Name != "ID" || len(spec.Values) != 1 {
				return true
			}
			if value, ok := spec.Values[0].(*ast.BasicLit); ok {
				text, err := strconv.Unquote(value.Value)
				if err != nil {
					t.Fatal(err)
				}
				all[spec.Names[0].Name] = text
			}
			return true
		})
	}
	return all
}

// TestIDs_AreDocumented verifies that each finding has a heading in docs/findings.md, which Finding.Link links to, and that each heading is about a
// finding.
func TestIDs_AreDocumented(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "findings.md"))
	if err != nil {
		t.Fatal(err)
	}
	var headings []string
	text := string(data)
	at := regexp.MustCompile("(?m)^### `([A-Za-z]+)`$").FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		name, end := text[m[2]:m[3]], len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		if len(strings.Fields(text[m[1]:end])) < 8 {
			t.Errorf("%s is not explained", name)
		}
		if slices.Contains(headings, name) {
			t.Errorf("%s has two headings", name)
		}
		headings = append(headings, name)
	}
	known := ids(t)
	if len(known) == 0 {
		t.Fatal("no constant was found")
	}
	for constant, value := range known {
		if constant != value {
			t.Errorf("%s is %q: constant and value are to be the same word", constant, value)
		}
		if !slices.Contains(headings, value) {
			t.Errorf("docs/findings.md has no heading ### `%s`", value)
		}
	}
	for _, heading := range headings {
		if known[heading] == "" {
			t.Errorf("docs/findings.md has the heading %s, and there is no finding of this name", heading)
		}
	}
}
