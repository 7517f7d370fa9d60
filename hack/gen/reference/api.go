// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	clusterinstall "github.com/clusterhub/clusterhub/pkg/apis/cluster/install"
	clusterviewinstall "github.com/clusterhub/clusterhub/pkg/apis/clusterview/install"
	edgeinstall "github.com/clusterhub/clusterhub/pkg/apis/edge/install"
	openmcpinstall "github.com/clusterhub/clusterhub/pkg/apis/openmcp/install"
	viewinstall "github.com/clusterhub/clusterhub/pkg/apis/view/install"
	workinstall "github.com/clusterhub/clusterhub/pkg/apis/work/install"
	"github.com/clusterhub/clusterhub/pkg/generated/openapi"
)

// installs are those of the groups that hub-apiserver serves.
var installs = []func(*runtime.Scheme){
	clusterinstall.Install, clusterviewinstall.Install, viewinstall.Install, openmcpinstall.Install, workinstall.Install, edgeinstall.Install,
}

// ours is how the import paths of our types begin.
const ours = "github.com/clusterhub/clusterhub/"

// apiPages has a page for each API version that hub-apiserver serves, with all of its kinds and their types.
func apiPages() ([]page, error) {
	definitions := openapi.GetOpenAPIDefinitions(func(model string) spec.Ref { return spec.MustCreateRef("#/" + model) })
	scheme := runtime.NewScheme()
	for _, install := range installs {
		install(scheme)
	}
	var pages []page
	for _, gv := range scheme.PrioritizedVersionsAllGroups() {
		if gv.Group == "" {
			continue // options and errors, which all servers have
		}
		p, err := apiPage(scheme, gv, definitions)
		if err != nil {
			return nil, err
		}
		pages = append(pages, p)
	}
	slices.SortFunc(pages, func(a, b page) int { return strings.Compare(a.name, b.name) })
	return pages, nil
}

// apiPage is about one version of a group.
func apiPage(scheme *runtime.Scheme, gv schema.GroupVersion, definitions map[string]common.OpenAPIDefinition) (page, error) {
	p := page{name: pageName(gv), title: "`" + gv.String() + "`"}
	models := map[string]string{}
	for kind, t := range scheme.KnownTypes(gv) {
		if !strings.HasPrefix(t.PkgPath(), ours) || strings.HasSuffix(kind, "List") {
			continue
		}
		model, ok := reflect.New(t).Interface().(interface{ OpenAPIModelName() string })
		if !ok {
			return page{}, fmt.Errorf("%s of %s has no OpenAPI model: run 'make generate'", kind, gv)
		}
		if _, metadata := definitions[model.OpenAPIModelName()].Schema.Properties["metadata"]; metadata {
			models[kind] = model.OpenAPIModelName()
		}
	}
	p.kinds = slices.Sorted(maps.Keys(models))
	if len(p.kinds) == 0 {
		return page{}, fmt.Errorf("%s has no kind", gv)
	}
	var b strings.Builder
	b.WriteString("Kinds: ")
	for i, kind := range p.kinds {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "[%s](#%s)", kind, strings.ToLower(kind))
	}
	b.WriteString(". `kubectl explain` has the same from a running hub.\n")

	// After each kind come the types that it is the first to have.
	done := map[string]bool{}
	for _, kind := range p.kinds {
		todo := []string{models[kind]}
		for len(todo) > 0 {
			model := todo[0]
			todo = todo[1:]
			if done[model] {
				continue
			}
			done[model] = true
			var next []string
			section(&b, model, kind == short(model), definitions, &next)
			todo = append(next, todo...)
		}
	}
	p.text = b.String()
	return p, nil
}

// section writes what a type is, and puts those of its fields into next.
func section(b *strings.Builder, model string, kind bool, definitions map[string]common.OpenAPIDefinition, next *[]string) {
	s := definitions[model].Schema
	level := "###"
	if kind {
		level = "##"
	}
	fmt.Fprintf(b, "\n%s %s\n\n%s\n", level, short(model), oneLine(s.Description))
	var name func(spec.Schema) string
	name = func(s spec.Schema) string {
		ref := strings.TrimPrefix(s.Ref.String(), "#/")
		if ref == "" && len(s.AllOf) == 1 {
			ref = strings.TrimPrefix(s.AllOf[0].Ref.String(), "#/")
		}
		if ref == "" {
			return basic(s, name)
		}
		definition, there := definitions[ref]
		if !there || !sameGroup(model, ref) || len(definition.Schema.Properties) == 0 {
			return short(ref)
		}
		if !slices.Contains(*next, ref) {
			*next = append(*next, ref)
		}
		return "[" + short(ref) + "](#" + strings.ToLower(short(ref)) + ")"
	}
	if len(s.Properties) > 0 {
		b.WriteString("\n" + table(s, name))
	}
}

// sameGroup reports whether two types are of one page.
func sameGroup(a, b string) bool {
	return a[:strings.LastIndex(a, ".")] == b[:strings.LastIndex(b, ".")]
}

// short is the last part of a model's name.
func short(model string) string { return model[strings.LastIndex(model, ".")+1:] }

// pageName is the file of a version of a group.
func pageName(gv schema.GroupVersion) string { return "api/" + gv.Group + "_" + gv.Version + ".md" }

// apiIndex is the page that lists the others.
func apiIndex(pages []page) string {
	var b strings.Builder
	b.WriteString("All fields of all kinds, by group and version. The groups are explained in [compatibility](../compatibility.md).\n\n" +
		"| group and version | kinds |\n|---|---|\n")
	for _, p := range pages {
		if len(p.kinds) == 0 {
			continue
		}
		var links []string
		for _, kind := range p.kinds {
			links = append(links, fmt.Sprintf("[%s](%s#%s)", kind, p.name, strings.ToLower(kind)))
		}
		fmt.Fprintf(&b, "| [%s](%s) | %s |\n", p.title, p.name, strings.Join(links, ", "))
	}
	return b.String()
}
