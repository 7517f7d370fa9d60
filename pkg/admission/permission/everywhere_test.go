// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permission_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// untold are the files that check permissions without audit annotations, and why.
var untold = map[string]string{
	"admission/permission/permission.go":             "it is the question itself",
	"admission/admissiontest/admissiontest.go":       "it is for tests",
	"admission/edge/services/services.go":            "serviceuse tells, and publishing asks for nothing by it",
	"admission/openmcp/clusterdeletion/admission.go": "nothing is let through or refused: it is about the names in a warning",
	"admission/work/replicasetauthor/admission.go":   "nothing is let through or refused: it is about whether there is a warning",
}

// TestAudit_AllPermissionChecks verifies that each file of a plugin or a storage that calls an authorizer also records the decision for
// auditors.
func TestAudit_AllPermissionChecks(t *testing.T) {
	root, found := filepath.Join("..", ".."), 0
	for _, folder := range []string{"admission", "registry"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			asks, tells := calls(file)
			name, _ := filepath.Rel(root, path)
			_, known := untold[filepath.ToSlash(name)]
			switch {
			case asks && !tells && !known:
				t.Errorf("%s asks for a right and tells auditors nothing of it: use Guard.Require or Guard.Decide in a plugin, permission.Used and permission.Lacked in a storage", name)
			case known && (!asks || tells):
				t.Errorf("%s is taken for one that asks and does not tell, which it is not", name)
			}
			if asks {
				found++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 10 {
		t.Errorf("only %d files ask for rights", found)
	}
}

// calls reports whether a file calls an authorizer, and whether it records decisions for auditors.
func calls(file *ast.File) (asks, tells bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := ""
		switch f := call.Fun.(type) {
		case *ast.SelectorExpr:
			name = f.Sel.Name
		case *ast.Ident:
			name = f.Name
		}
		switch name {
		case "Holds", "Authorize":
			asks = true
		case "Decide", "Lacked":
			tells = true
		}
		return true
	})
	return asks, tells
}
