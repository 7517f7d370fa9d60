// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// subjects are the packages whose conditions and reasons users meet, and on which objects. The order is that of the page.
var subjects = []struct{ folder, object string }{
	{"pkg/registration", "ManagedCluster"},
	{"pkg/controllers/registration", "ManagedCluster"},
	{"pkg/agent", "ManagedCluster, by its agent"},
	{"pkg/apiserver/moves", "Events about ManagedCluster and ManagedClusterSet"},
	{"pkg/controllers/sets", "ManagedClusterSet, ManagedClusterSetBinding"},
	{"pkg/apis/cluster/v1beta1", "Placement"},
	{"pkg/apis/cluster", "Placement, ManagedClusterSet"},
	{"pkg/apis/work/v1", "ManifestWork"},
	{"pkg/work", "ManifestWork"},
	{"pkg/apis/work/v1alpha1", "ManifestWorkReplicaSet"},
	{"pkg/controllers/works", "ManifestWorkReplicaSet"},
	{"pkg/apis/openmcp/v1alpha1", "Cluster, ClusterRequest, AccessRequest"},
	{"pkg/controllers/access", "Cluster, ClusterRequest, AccessRequest"},
	{"pkg/clusterprovider", "Cluster, AccessRequest, by a cluster provider"},
	{"pkg/local/provider", "Cluster, AccessRequest, by a cluster provider"},
	{"pkg/apis/edge/v1alpha1", "DeploymentPolicy, DeploymentPattern, EdgePlacement"},
	{"pkg/controllers/edge", "DeploymentPolicy, DeploymentPattern, EdgePlacement"},
	{"pkg/edge", "EdgePlacement and DeployCheck: why a service fits, or does not"},
	{"pkg/apis/operator/v1", "Klusterlet, ClusterManager"},
	{"pkg/operator", "Klusterlet, ClusterManager: kubeconfigs and other clusters"},
	{"pkg/remote", "Klusterlet, ClusterManager: kubeconfigs and other clusters"},
	{"pkg/inspect", "What `kubectl hub tree` says of itself"},
	{"pkg/ui", "Refusals of the server of `kubectl hub ui`"},
}

var (
	named = regexp.MustCompile(`^([cC]ondition|[rR]eason)[A-Z]`)
	// values are written in CamelCase: other constants with such a name, such as a format, are something else.
	values = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)
	// unversioned packages repeat what the versions of their API have.
	unversioned = []string{"pkg/apis/edge", "pkg/apis/work"}
)

// constant is the type or a reason of a condition.
type constant struct {
	name, value, text string
}

// conditionsPage has the types and reasons of the conditions that our programs write: the constants with such a name, or of
// a type Reason. One without a comment is an error: what users read in a status has to be explained.
func conditionsPage(root string) (string, error) {
	found := map[string][]constant{}
	var problems []error
	err := filepath.WalkDir(filepath.Join(root, "pkg"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(entry.Name(), "zz_") {
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		if slices.Contains(unversioned, folder) {
			return nil
		}
		constants, err := constantsOf(path)
		if err != nil || len(constants) == 0 {
			return err
		}
		object, known := objectOf(folder)
		if !known {
			problems = append(problems, fmt.Errorf("%s has a condition or a reason: say in hack/gen/reference/conditions.go on which objects users meet those of %s", path, folder))
			return nil
		}
		for _, c := range constants {
			if c.text == "" {
				problems = append(problems, fmt.Errorf("%s: %s has no comment that says what it means", path, c.name))
			}
		}
		found[object] = append(found[object], constants...)
		return nil
	})
	if err = errors.Join(append(problems, err)...); err != nil {
		return "", err
	}
	return conditionsText(found), nil
}

// objectOf is the object of the longest folder that begins the path.
func objectOf(folder string) (string, bool) {
	best, object := -1, ""
	for _, s := range subjects {
		if (folder == s.folder || strings.HasPrefix(folder, s.folder+"/")) && len(s.folder) > best {
			best, object = len(s.folder), s.object
		}
	}
	return object, best >= 0
}

// constantsOf are those of one file, in their order.
func constantsOf(path string) ([]constant, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var all []constant
	for _, declaration := range file.Decls {
		block, ok := declaration.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		for _, s := range block.Specs {
			entry := s.(*ast.ValueSpec)
			kind, _ := entry.Type.(*ast.Ident)
			selected, _ := entry.Type.(*ast.SelectorExpr)
			reason := kind != nil && kind.Name == "Reason" || selected != nil && selected.Sel.Name == "Reason"
			for i, name := range entry.Names {
				if i >= len(entry.Values) || !reason && !named.MatchString(name.Name) {
					continue
				}
				literal, ok := entry.Values[i].(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					continue
				}
				value, err := strconv.Unquote(literal.Value)
				if err != nil {
					return nil, err
				}
				if values.MatchString(value) {
					all = append(all, constant{name.Name, value, comment(name.Name, entry, block)})
				}
			}
		}
	}
	return all, nil
}

// comment is what is said of a constant, without its name at the beginning. What stands on its line is about it alone; what stands
// before it may be about those after it, too.
func comment(name string, entry *ast.ValueSpec, block *ast.GenDecl) string {
	text := entry.Comment.Text()
	if text == "" {
		text = entry.Doc.Text()
	}
	if text == "" && len(block.Specs) == 1 {
		text = block.Doc.Text()
	}
	text = oneLine(text)
	for _, begin := range []string{name + ": ", name + " is the reason when ", name + " is set when ", name + " means that ", name + " is ", name + " says that ", name + " says ", name + " "} {
		if rest, cut := strings.CutPrefix(text, begin); cut {
			text = rest
			break
		}
	}
	return strings.TrimSuffix(strings.TrimPrefix(text, "that "), ".")
}

// conditionsText writes the page.
func conditionsText(found map[string][]constant) string {
	var b strings.Builder
	b.WriteString("What the conditions of our kinds are called, and the reasons that they give. `kubectl describe` and `-o yaml` show them, with a message.\n")
	written := map[string]bool{}
	for _, s := range subjects {
		if written[s.object] || len(found[s.object]) == 0 {
			continue
		}
		written[s.object] = true
		fmt.Fprintf(&b, "\n## %s\n", s.object)
		for _, reasons := range []bool{false, true} {
			var rows []string
			for _, c := range found[s.object] {
				if strings.HasPrefix(strings.ToLower(c.name), "condition") == reasons {
					continue
				}
				if row := fmt.Sprintf("| `%s` | %s |\n", c.value, c.text); !slices.Contains(rows, row) {
					rows = append(rows, row)
				}
			}
			if len(rows) > 0 {
				title := map[bool]string{false: "condition", true: "reason"}[reasons]
				b.WriteString("\n| " + title + " | |\n|---|---|\n" + strings.Join(rows, ""))
			}
		}
	}
	return b.String()
}
