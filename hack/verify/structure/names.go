// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
)

// namePackages is the largest number of packages with a type of the same name that is not a violation.
const namePackages = 3

// sharedNames are the names that any number of packages may give to a type, with the reason.
var sharedNames = map[string]string{
	"Index":      "the index of what its package is about",
	"Options":    "the argument of a constructor, as in controller-runtime",
	"pass":       "one reconciliation of one object, with what was read for it",
	"Plugin":     "an admission plugin, as in k8s.io/apiserver; its package is its name",
	"Reconciler": "a controller, as in controller-runtime; its package is its name",
	"REST":       "the storage of a resource, as in k8s.io/apiserver",
	"Server":     "a server with a listener, as in net/http",
}

// typeNames has the packages that declare a type, by its name.
type typeNames map[string]map[string]bool

// add adds the types that a file declares outside of functions. Types in tests do not count.
func (n typeNames) add(file string, syntax *ast.File) {
	if strings.HasPrefix(file, "test/") {
		return
	}
	for _, d := range syntax.Decls {
		declaration, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range declaration.Specs {
			t, ok := s.(*ast.TypeSpec)
			if !ok || sharedNames[t.Name.Name] != "" {
				continue
			}
			if n[t.Name.Name] == nil {
				n[t.Name.Name] = map[string]bool{}
			}
			n[t.Name.Name][namePackage(file)] = true
		}
	}
}

// namePackage returns the package of a file. The versions of an API group have the same types, and are one package.
func namePackage(file string) string {
	folder := path.Dir(file)
	if group, ok := strings.CutPrefix(folder, "pkg/apis/"); ok {
		group, _, _ = strings.Cut(group, "/")
		return "pkg/apis/" + group
	}
	return folder
}

// violations returns the names that too many packages declare.
func (n typeNames) violations() []violation {
	var found []violation
	for name, packages := range n {
		if len(packages) > namePackages {
			in := slices.Sorted(maps.Keys(packages))
			found = append(found, violation{"names", fmt.Sprintf("%s is a type in %d packages: %s", name, len(in), strings.Join(in, " "))})
		}
	}
	return found
}
