// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jsonpath finds values in objects by paths that are not trusted. It supports the syntax of k8s.io/client-go/util/jsonpath, and returns the
// same results, but with limits: there, a path of a hundred characters can run forever, or panic.
package jsonpath

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/util/jsonpath"
)

const (
	// MaxPath is the maximum length of a path, in bytes.
	MaxPath = 1024
	// Steps is the maximum number of values that are visited for one object, by all its paths. An object of 1.5 MiB has 100,000 to 200,000 values.
	Steps = 1_000_000
)

// ErrCost reports that a path visits too many values.
var ErrCost = errors.New("the paths visit too many values of the object: use a path that names its fields")

// Meter counts how many values all paths for one object may still visit.
type Meter struct{ left int }

// NewMeter returns a Meter that allows a number of steps.
func NewMeter(steps int) *Meter { return &Meter{steps} }

func (m *Meter) take(steps int) error {
	m.left -= steps
	if m.left < 0 {
		m.left = 0
		return ErrCost
	}
	return nil
}

// Path is a parsed path. It can be used from several goroutines.
type Path struct{ nodes []jsonpath.Node }

// SyntaxError is the error of Parse for a text that is not a JSONPath. Other errors are for paths that other programs may support. Its message is
// client-go's, which upstream's agent has in its conditions.
type SyntaxError struct{ err error }

func (e *SyntaxError) Error() string { return e.err.Error() }

// Parse parses a path such as .status.conditions[?(@.type=="Ready")].status, without braces.
func Parse(path string) (parsed *Path, err error) {
	if len(path) > MaxPath {
		return nil, fmt.Errorf("expected a path of at most %d bytes, got %d", MaxPath, len(path))
	}
	defer func() {
		if r := recover(); r != nil {
			parsed, err = nil, fmt.Errorf("the path cannot be parsed: %v", r)
		}
	}()
	parser, err := jsonpath.Parse("path", "{"+path+"}")
	if err != nil {
		return nil, &SyntaxError{err}
	}
	if len(parser.Root.Nodes) != 1 {
		return nil, errors.New("expected one path such as .status.phase, got several, or text beside it")
	}
	list, ok := parser.Root.Nodes[0].(*jsonpath.ListNode)
	if !ok {
		return nil, errors.New("expected a path such as .status.phase, got text")
	}
	if err := check(list.Nodes); err != nil {
		return nil, err
	}
	return &Path{list.Nodes}, nil
}

// check rejects nodes that are not part of a path.
func check(nodes []jsonpath.Node) error {
	for _, node := range nodes {
		var inner []*jsonpath.ListNode
		switch n := node.(type) {
		case *jsonpath.IdentifierNode:
			return fmt.Errorf("expected fields such as .status, got the word %q", n.Name)
		case *jsonpath.UnionNode:
			inner = n.Nodes
		case *jsonpath.FilterNode:
			inner = []*jsonpath.ListNode{n.Left, n.Right}
		}
		for _, list := range inner {
			if err := check(list.Nodes); err != nil {
				return err
			}
		}
	}
	return nil
}

// Find returns all values at the path; nil if there are no values. Those of maps are ordered by key.
func (p *Path) Find(object any, m *Meter) ([]any, error) {
	return walkAll([]any{object}, p.nodes, m)
}

// Field splits a path that ends in the name of a field. It returns the maps that may have the field, and its name.
func (p *Path) Field(object any, m *Meter) (parents []map[string]any, name string, err error) {
	if len(p.nodes) == 0 {
		return nil, "", ErrNoField
	}
	last, ok := p.nodes[len(p.nodes)-1].(*jsonpath.FieldNode)
	if !ok || last.Value == "" {
		return nil, "", ErrNoField
	}
	values, err := walkAll([]any{object}, p.nodes[:len(p.nodes)-1], m)
	if err != nil {
		return nil, last.Value, err
	}
	for _, value := range values {
		if parent, ok := value.(map[string]any); ok {
			parents = append(parents, parent)
		}
	}
	return parents, last.Value, nil
}

// ErrNoField reports that a path does not end in the name of a field.
var ErrNoField = errors.New("expected a path that ends in the name of a field, such as .spec.replicas")

func walkAll(values []any, nodes []jsonpath.Node, m *Meter) (_ []any, err error) {
	for _, node := range nodes {
		values, err = walk(values, node, m)
		if err != nil {
			return nil, err
		}
	}
	return values, nil
}

func walk(values []any, node jsonpath.Node, m *Meter) ([]any, error) {
	// Each step has a cost, even if it finds nothing.
	if err := m.take(1 + len(values)); err != nil {
		return nil, err
	}
	switch n := node.(type) {
	case *jsonpath.ListNode:
		return walkAll(values, n.Nodes, m)
	case *jsonpath.TextNode:
		return []any{n.Text}, nil
	case *jsonpath.IntNode:
		return slices.Repeat([]any{n.Value}, len(values)), nil
	case *jsonpath.FloatNode:
		return slices.Repeat([]any{n.Value}, len(values)), nil
	case *jsonpath.BoolNode:
		return slices.Repeat([]any{n.Value}, len(values)), nil
	case *jsonpath.FieldNode:
		return field(values, n.Value), nil
	case *jsonpath.ArrayNode:
		return array(values, n.Params, m)
	case *jsonpath.WildcardNode:
		var found []any
		for _, value := range values {
			inner := children(value)
			if err := m.take(len(inner)); err != nil {
				return nil, err
			}
			found = append(found, inner...)
		}
		return found, nil
	case *jsonpath.RecursiveNode:
		return descend(nil, values, m)
	case *jsonpath.UnionNode:
		var found []any
		for _, list := range n.Nodes {
			some, err := walkAll(values, list.Nodes, m)
			if err != nil {
				return nil, err
			}
			found = append(found, some...)
		}
		return found, nil
	case *jsonpath.FilterNode:
		return filter(values, n, m)
	}
	return nil, fmt.Errorf("unexpected part of a path: %s", node.Type())
}

func field(values []any, name string) (found []any) {
	for _, value := range values {
		if object, ok := value.(map[string]any); ok {
			if inner, ok := object[name]; ok {
				found = append(found, inner)
			}
		}
	}
	return found
}

// array evaluates [i] and [from:to:step].
func array(values []any, params [3]jsonpath.ParamsEntry, m *Meter) (found []any, err error) {
	for _, value := range values {
		if value == nil {
			continue
		}
		list, ok := value.([]any)
		if !ok {
			return nil, fmt.Errorf("%T is not array or slice", value)
		}
		from, to, step := params[0].Value, params[1].Value, 1
		if !params[0].Known {
			from = 0
		}
		if from < 0 {
			from += len(list)
		}
		if !params[1].Known {
			to = len(list)
		}
		if to < 0 || (to == 0 && params[1].Derived) {
			to += len(list)
		}
		if params[2].Known {
			step = params[2].Value
		}
		switch {
		case from == to:
			return found, nil
		case from < 0 || from >= len(list):
			return nil, fmt.Errorf("array index out of bounds: index %d, length %d", from, len(list))
		case to < 0 || to > len(list):
			return nil, fmt.Errorf("array index out of bounds: index %d, length %d", to-1, len(list))
		case from > to:
			return nil, fmt.Errorf("starting index %d is greater than ending index %d", from, to)
		case step <= 0:
			return nil, errors.New("step must be > 0")
		}
		if err := m.take(to - from); err != nil {
			return nil, err
		}
		for i := from; i < to; {
			found = append(found, list[i])
			if step >= to-i {
				break
			}
			i += step
		}
	}
	return found, nil
}

func children(value any) []any {
	switch v := value.(type) {
	case map[string]any:
		inner := make([]any, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			inner = append(inner, v[key])
		}
		return inner
	case []any:
		return v
	}
	return nil
}

// descend appends all non-empty values of the trees below the given ones.
func descend(found, values []any, m *Meter) (_ []any, err error) {
	for _, value := range values {
		inner := children(value)
		if err := m.take(1 + len(inner)); err != nil {
			return nil, err
		}
		if text, ok := value.(string); len(inner) > 0 || (ok && text != "") {
			found = append(found, value)
		}
		found, err = descend(found, inner, m)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}
