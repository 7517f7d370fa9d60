// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Document has the parts that are read of an OpenAPI v3 document of one group and version.
type Document struct {
	Paths      map[string]pathItem
	Components struct{ Schemas map[string]*model }
}

// pathItem has the operations of a path. Operations that do not exist are nil.
type pathItem struct {
	Parameters                    []parameter
	Get, Put, Post, Delete, Patch *operationItem
}

type operationItem struct {
	Parameters  []parameter
	RequestBody struct {
		Content map[string]struct{ Schema *model }
	}
	Kind   schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
	Action string                  `json:"x-kubernetes-action"`
}

type parameter struct{ Name, In string }

// model is a schema, or a reference to one.
type model struct {
	Ref         string `json:"$ref"`
	AllOf       []*model
	Type        string
	Format      string
	Enum        []any
	Properties  map[string]*model
	Items       *model
	Additional  json.RawMessage `json:"additionalProperties"`
	IntOrString bool            `json:"x-kubernetes-int-or-string"`
}

// operation is an operation of the server: a verb on a resource, a subresource or a collection.
type operation struct {
	method, path, action string
	kind                 schema.GroupVersionKind
	// query has the names of the parameters, and contentTypes those of the body, if it may have one.
	query, contentTypes []string
	// model is the schema of the object that is read or written, or nil if the document has none for the kind.
	model *model
	// document resolves references of the model.
	document *Document
}

// read returns the operations of a document on resources, in the order of their paths and methods.
func (d *Document) read() (all []operation) {
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		item := d.Paths[path]
		for _, o := range []struct {
			method string
			item   *operationItem
		}{{"GET", item.Get}, {"PUT", item.Put}, {"POST", item.Post}, {"DELETE", item.Delete}, {"PATCH", item.Patch}} {
			if o.item == nil || o.item.Kind.Kind == "" || strings.Contains(path, "/watch/") {
				continue
			}
			all = append(all, operation{
				method: o.method, path: path, action: o.item.Action, kind: o.item.Kind, document: d, model: d.modelOf(o.item.Kind),
				query: queryOf(slices.Concat(item.Parameters, o.item.Parameters)), contentTypes: slices.Sorted(maps.Keys(o.item.RequestBody.Content)),
			})
		}
	}
	return all
}

func queryOf(parameters []parameter) (names []string) {
	for _, p := range parameters {
		if p.In == "query" {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// modelOf returns the schema of a kind, which has its name, or nil.
func (d *Document) modelOf(kind schema.GroupVersionKind) *model {
	suffix := "." + kind.Version + "." + kind.Kind
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		if strings.HasSuffix(name, suffix) {
			return d.Components.Schemas[name]
		}
	}
	return nil
}

// resolve follows references.
func (d *Document) resolve(m *model) *model {
	for range 8 {
		switch {
		case m == nil:
			return &model{}
		case m.Ref != "":
			m = d.Components.Schemas[strings.TrimPrefix(m.Ref, "#/components/schemas/")]
		case len(m.AllOf) == 1:
			m = m.AllOf[0]
		default:
			return m
		}
	}
	return &model{}
}

// values returns the schema of the values of a map, or nil.
func (m *model) values() *model {
	if len(m.Additional) == 0 || m.Additional[0] != '{' {
		return nil
	}
	of := &model{}
	if json.Unmarshal(m.Additional, of) != nil {
		return nil
	}
	return of
}

// operations returns the operations of all documents, in the order of their paths.
func operations(documents [][]byte) (all []operation, err error) {
	for _, data := range documents {
		d := &Document{}
		if err := json.Unmarshal(data, d); err != nil {
			return nil, fmt.Errorf("OpenAPI document: %w", err)
		}
		all = append(all, d.read()...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the %d OpenAPI documents have no operation on a resource", len(documents))
	}
	slices.SortStableFunc(all, func(a, b operation) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.method, b.method))
	})
	return all, nil
}
