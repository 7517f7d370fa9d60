// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpath

import (
	"errors"
	"fmt"

	"k8s.io/client-go/third_party/forked/golang/template"
	"k8s.io/client-go/util/jsonpath"
)

var errSeveral = errors.New("can only compare one element at a time")

func filter(values []any, n *jsonpath.FilterNode, m *Meter) (found []any, err error) {
	for _, value := range values {
		list, ok := value.([]any)
		if !ok {
			// The error does not contain the value, which may be large.
			return nil, fmt.Errorf("%T is not array or slice and cannot be filtered", value)
		}
		for _, item := range list {
			passes, err := passes(item, n, m)
			if err != nil {
				return nil, err
			}
			if passes {
				found = append(found, item)
			}
		}
	}
	return found, nil
}

func passes(item any, n *jsonpath.FilterNode, m *Meter) (bool, error) {
	if err := m.take(1); err != nil {
		return false, err
	}
	left, err := walkAll([]any{item}, n.Left.Nodes, m)
	if n.Operator == "exists" {
		if errors.Is(err, ErrCost) {
			return false, err
		}
		return len(left) > 0, nil
	}
	if err != nil {
		return false, err
	}
	if len(left) != 1 {
		return false, several(left)
	}
	right, err := walkAll([]any{item}, n.Right.Nodes, m)
	if err != nil {
		return false, err
	}
	if len(right) != 1 {
		return false, several(right)
	}
	// Comparing long texts takes time.
	if text, ok := left[0].(string); ok {
		if err := m.take(len(text) / 64); err != nil {
			return false, err
		}
	}
	return compare(left[0], n.Operator, right[0])
}

// several returns an error if there is more than one value; without any value, nothing passes.
func several(values []any) error {
	if len(values) > 1 {
		return errSeveral
	}
	return nil
}

func compare(left any, operator string, right any) (bool, error) {
	switch operator {
	case "<":
		return template.Less(left, right)
	case ">":
		return template.Greater(left, right)
	case "==":
		return template.Equal(left, right)
	case "!=":
		return template.NotEqual(left, right)
	case "<=":
		return template.LessEqual(left, right)
	case ">=":
		return template.GreaterEqual(left, right)
	}
	return false, fmt.Errorf("unrecognized filter operator %s", operator)
}
