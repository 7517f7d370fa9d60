// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"path"
	"strings"
)

// variants has the functions of files for some systems only, such as process_unix.go and process_windows.go: by folder, and then by system. Tests and
// linters compile those of one system only.
type variants map[string]map[string]functions

// functions has the place of each function of a file, by its name.
type functions map[string]string

// add adds the functions of a file that is for some systems only.
func (v variants) add(file string, syntax *ast.File, place func(ast.Node) string) {
	for _, system := range []string{"linux", "unix", "windows", "other"} {
		if !strings.HasSuffix(file, "_"+system+".go") {
			continue
		}
		folder := path.Dir(file)
		if v[folder] == nil {
			v[folder] = map[string]functions{}
		}
		if v[folder][system] == nil {
			v[folder][system] = functions{}
		}
		for _, d := range syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				v[folder][system][f.Name.Name] = place(f)
			}
		}
	}
}

// violations returns the functions of Windows and other systems that no file of the folder for Linux or Unix has.
func (v variants) violations() (found []violation) {
	for _, files := range v {
		for _, system := range []string{"windows", "other"} {
			for name, place := range files[system] {
				_, linux := files["linux"][name]
				_, unix := files["unix"][name]
				if !linux && !unix {
					found = append(found, violation{"variants", place + ": " + name})
				}
			}
		}
	}
	return found
}
