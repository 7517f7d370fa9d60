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
	"strconv"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

// askers are the folders whose code asks what the users of a hub may do, and as which program. Commands and agents ask, too, but only what they
// themselves may do in a cluster.
var askers = []struct{ folder, program string }{
	{"pkg/admission", "hub-apiserver"}, {"pkg/registry", "hub-apiserver"}, {"pkg/apiserver", "hub-apiserver"}, {"pkg/controllers", "hub-controller-manager"},
}

// asked is a right that the code asks for.
type asked struct {
	// when describes the act of a user that requires the right.
	when                  string
	verb, resource, group string
	// name is the required name of the right, and namespace its namespace; both may be empty.
	name, namespace string
	// by is the plugin or the program that asks.
	by string
}

var (
	// The comment of each place that asks: // Permission (key: value; …): when. The keys say what the code has in variables.
	told = regexp.MustCompile(`(?s)(?:^|\n)Permission(?: \(([^)]*)\))?: (.+)$`)
	// rules are the types of required rights.
	rules = map[string]bool{"rbac.Permission": true, "authorizer.AttributesRecord": true, "authorizationv1.ResourceAttributes": true, "question": true}
	// groups are the constants GroupName, by the folder below pkg/apis.
	groups = map[string]string{"cluster": cluster.GroupName, "edge": edge.GroupName, "openmcp": openmcp.GroupName, "work": work.GroupName}
)

// askedFor are all rights that the code asks for. A place without a comment is an error, and so is a comment that is of no such place.
func askedFor(root string) (all []asked, err error) {
	var problems []error
	for _, a := range askers {
		err := filepath.WalkDir(filepath.Join(root, filepath.FromSlash(a.folder)), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "permission" || entry.Name() == "services" || strings.HasSuffix(entry.Name(), "test")):
				return fs.SkipDir // plugins ask by these, see rightOf
			case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			found, err := askedIn(path, a.program)
			all = append(all, found...)
			if err != nil {
				problems = append(problems, err)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, errors.Join(problems...)
}

// askedIn are those of one file.
func askedIn(path, program string) (all []asked, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	// comments are those of permissions, by their last line.
	comments, used := map[int][]string{}, map[int]bool{}
	for _, group := range file.Comments {
		if parts := told.FindStringSubmatch(group.Text()); parts != nil {
			comments[set.Position(group.End()).Line] = parts
		}
	}
	line := func(n ast.Node) int { return set.Position(n.Pos()).Line }
	var problems []error
	var above []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			above = above[:len(above)-1]
			return true
		}
		above = append(above, n)
		found, ok := rightOf(n, file)
		if !ok {
			return true
		}
		for i := len(above) - 1; i > 0; i-- {
			parts, ok := comments[line(above[i])-1]
			if !ok {
				continue
			}
			used[line(above[i])-1] = true
			if err := found.tell(parts[1], parts[2]); err != nil {
				problems = append(problems, fmt.Errorf("%s:%d: %w", path, line(n), err))
			}
			found.by = program
			if plugin := pluginOf(filepath.Dir(path)); plugin != "" {
				found.by = plugin
			}
			all = append(all, found)
			return true
		}
		problems = append(problems, fmt.Errorf("%s:%d asks for a right: say above it in a comment \"// Permission: …\" what a user does that needs it", path, line(n)))
		return true
	})
	for at := range comments {
		if !used[at] {
			problems = append(problems, fmt.Errorf("%s:%d: the comment \"Permission: …\" stands above nothing that asks for a right", path, at))
		}
	}
	return all, errors.Join(problems...)
}

const (
	// variable stands for a value that only a comment can state.
	variable = "?"
	ofObject = "that of the object"
)

// rightOf returns the right that an expression requires.
func rightOf(n ast.Node, file *ast.File) (asked, bool) {
	switch n := n.(type) {
	case *ast.CallExpr:
		switch written(n.Fun) {
		case "permission.Accept":
			return asked{verb: "update", resource: "managedclusters/accept", group: cluster.GroupName + "` or `" + permission.RegisterGroup, name: "the cluster"}, true
		case "permission.On":
			a := asked{verb: value(n.Args[1], file), resource: "that of the object", group: ofObject, name: "the object"}
			if part := value(n.Args[2], file); part != "" {
				a.resource += ", `" + "/" + part + "`"
			}
			return a, true
		case "services.NewFinder":
			return asked{verb: "get", resource: "edgeservices", group: edge.GroupName, name: "the EdgeService", namespace: "of the service"}, true
		case "hubfinalizers.Rules":
			return asked{verb: "update", resource: "that of the object, `/finalizers`", group: ofObject, name: "the object"}, true
		}
	case *ast.CompositeLit:
		if n.Type == nil || !rules[written(n.Type)] {
			return asked{}, false
		}
		fields, known := map[string]string{}, false
		for _, element := range n.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok {
				key := strings.TrimPrefix(strings.ToLower(written(pair.Key)), "api")
				fields[key] = value(pair.Value, file)
				known = known || key != "version" && key != "resourcerequest" && fields[key] != variable
			}
		}
		a := asked{verb: fields["verb"], resource: fields["resource"], group: fields["group"], name: fields["name"], namespace: fields["namespace"]}
		if part := fields["subresource"]; part != "" {
			a.resource += "/" + part
		}
		return a, known // what is all of variables hands on what another place has asked for
	}
	return asked{}, false
}

// tell adds the contents of the comment, which must state all values that the code has in variables, except the namespace.
func (a *asked) tell(keys, when string) error {
	for _, pair := range strings.Split(keys, ";") {
		key, said, ok := strings.Cut(strings.TrimSpace(pair), ": ")
		at, known := map[string]*string{"verb": &a.verb, "resource": &a.resource, "name": &a.name, "namespace": &a.namespace}[key]
		switch {
		case keys == "":
		case !ok || !known:
			return fmt.Errorf("expected keys of verb, resource, name, namespace in \"Permission (key: value; …)\", got %q", pair)
		default:
			*at = said
			if key == "resource" && a.group == ofObject {
				a.group = cluster.GroupName
			}
		}
	}
	for key, got := range map[string]string{"verb": a.verb, "resource": a.resource, "group": a.group, "name": a.name, "namespace": a.namespace} {
		if strings.Contains(got, variable) || got == "" && (key == "verb" || key == "resource") {
			return fmt.Errorf("the %s is none that can be read here: say it in the comment, as in \"Permission (%s: …): …\"", key, key)
		}
	}
	a.when = strings.TrimSuffix(inCell(when), ".")
	return nil
}

// inCell is a text of Markdown as it stands in a table.
func inCell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}

// value is a text or a known constant; else it is a variable.
func value(e ast.Expr, file *ast.File) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil {
			return s
		}
	case *ast.SelectorExpr:
		if e.Sel.Name != "GroupName" {
			break
		}
		for _, spec := range file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			_, below, ours := strings.Cut(path, "/pkg/apis/")
			group, version, _ := strings.Cut(below, "/")
			if name := written(e.X); ours && (spec.Name == nil && name == group || spec.Name != nil && spec.Name.Name == name || name == version) {
				return groups[group]
			}
		}
	}
	return variable
}

// written is a name as it stands in the code.
func written(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return written(e.X) + "." + e.Sel.Name
	}
	return ""
}

// pluginOf is the name of the admission plugin in a folder, if there is one.
func pluginOf(folder string) string {
	text, _ := filepath.Glob(filepath.Join(folder, "*.go"))
	for _, path := range text {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		for _, declaration := range file.Decls {
			block, ok := declaration.(*ast.GenDecl)
			if !ok || block.Tok != token.CONST {
				continue
			}
			for _, s := range block.Specs {
				if entry := s.(*ast.ValueSpec); entry.Names[0].Name == "PluginName" && len(entry.Values) == 1 {
					return value(entry.Values[0], file)
				}
			}
		}
	}
	return ""
}
