// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

// crd has the fields of a CustomResourceDefinition that are read.
type crd struct {
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind string `json:"kind"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Schema struct {
				OpenAPIV3Schema spec.Schema `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

// crdPages has a page for each CustomResourceDefinition in folder.
func crdPages(folder string) ([]page, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no CustomResourceDefinitions in %s", folder)
	}
	byVersion := map[schema.GroupVersion]*page{}
	var order []schema.GroupVersion
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		crd := crd{}
		if err := yaml.Unmarshal(data, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, version := range crd.Spec.Versions {
			gv := schema.GroupVersion{Group: crd.Spec.Group, Version: version.Name}
			if byVersion[gv] == nil {
				order = append(order, gv)
				byVersion[gv] = &page{name: pageName(gv), title: "`" + gv.String() + "`",
					text: "These are CustomResourceDefinitions of the clusters that [hub-operator](../../detached.md) runs on.\n"}
			}
			p := byVersion[gv]
			p.kinds = append(p.kinds, crd.Spec.Names.Kind)
			p.text += nested(crd.Spec.Names.Kind, version.Schema.OpenAPIV3Schema)
		}
	}
	var pages []page
	for _, gv := range order {
		pages = append(pages, *byVersion[gv])
	}
	return pages, nil
}

// nested has a section for the kind and one for each field that has fields of its own, named by its path.
func nested(kind string, s spec.Schema) string {
	var b strings.Builder
	type part struct {
		path   string
		schema spec.Schema
	}
	todo := []part{{kind, s}}
	for len(todo) > 0 {
		p := todo[0]
		todo = todo[1:]
		level := "###"
		if p.path == kind {
			level = "##"
		}
		fmt.Fprintf(&b, "\n%s %s\n\n%s\n", level, p.path, oneLine(p.schema.Description))
		var next []part
		for _, field := range fieldsOf(p.schema) {
			if inner, has := fielded(p.schema.Properties[field]); has {
				next = append(next, part{p.path + "." + field, inner})
			}
		}
		b.WriteString("\n" + table(p.schema, func(s spec.Schema) string { return crdType(s) }))
		todo = append(next, todo...)
	}
	return b.String()
}

// fielded is the type with fields that a field is, or is a list or map of.
func fielded(s spec.Schema) (spec.Schema, bool) {
	switch {
	case len(s.Properties) > 0:
		return s, true
	case s.Items != nil && s.Items.Schema != nil:
		return fielded(*s.Items.Schema)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return fielded(*s.AdditionalProperties.Schema)
	}
	return spec.Schema{}, false
}

func crdType(s spec.Schema) string {
	if len(s.Properties) > 0 {
		return "object, below"
	}
	return basic(s, crdType)
}
