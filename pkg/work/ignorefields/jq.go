// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ignorefields

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/itchyny/gojq"
)

const (
	// jqTime bounds the time for all expressions of a manifest.
	jqTime = time.Second
	// maxJQ is the maximum length of an expression, in bytes, and maxPaths the maximum number of fields that one may name.
	maxJQ    = 1024
	maxPaths = 10_000
)

// removeJQ does what del(expression) does in jq: it evaluates the paths one by one, and removes the fields itself. So no expression creates a value,
// which could have any size.
func removeJQ(ctx context.Context, object map[string]any, expression string) (err error) {
	defer func() {
		// No expression of a user may crash the agent. Formatting the value of the panic could panic, too.
		if recover() != nil {
			err = errors.New("the jq expression cannot be evaluated")
		}
	}()
	if len(expression) > maxJQ {
		return fmt.Errorf("expected an expression of at most %d bytes, got %d", maxJQ, len(expression))
	}
	query, err := gojq.Parse(expression)
	if err != nil {
		return fmt.Errorf("failed to parse jq expression: %w", err)
	}
	if err := checkQuery(query); err != nil {
		return err
	}
	code, err := gojq.Compile(&gojq.Query{Term: &gojq.Term{
		Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: "path", Args: []*gojq.Query{query}},
	}})
	if err != nil {
		return fmt.Errorf("failed to compile jq expression: %w", err)
	}
	paths, err := pathsOf(ctx, code, object)
	if err != nil {
		return err
	}
	paths.removeFrom(object)
	return nil
}

func pathsOf(ctx context.Context, code *gojq.Code, object map[string]any) (*paths, error) {
	all := &paths{}
	iter := code.RunWithContext(ctx, numbers(object))
	for n := 0; ; n++ {
		value, ok := iter.Next()
		if !ok {
			return all, nil
		}
		if err, ok := value.(error); ok {
			if errors.Is(err, context.DeadlineExceeded) {
				return nil, fmt.Errorf("jq expression execution timed out after %s", jqTime)
			}
			return nil, fmt.Errorf("jq expression returned error: %w", err)
		}
		path, ok := value.([]any)
		if !ok || len(path) == 0 {
			return nil, errors.New("expected a path to a field, got one to the whole object")
		}
		if n >= maxPaths {
			return nil, fmt.Errorf("expected an expression that names at most %d fields", maxPaths)
		}
		all.add(path)
	}
}

// numbers returns a copy in which numbers have the types of jq.
func numbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(v))
		for key, inner := range v {
			copied[key] = numbers(inner)
		}
		return copied
	case []any:
		copied := make([]any, len(v))
		for i, inner := range v {
			copied[i] = numbers(inner)
		}
		return copied
	case int64:
		return int(v)
	}
	return value
}

// paths is a tree of what to remove: all of the value at a key, or the paths below it.
type paths struct {
	all   bool
	below map[any]*paths
}

func (p *paths) add(path []any) {
	for _, key := range path {
		next := p.below[key]
		if next == nil {
			if p.below == nil {
				p.below = map[any]*paths{}
			}
			next = &paths{}
			p.below[key] = next
		}
		p = next
	}
	p.all = true
}

// removeFrom returns the value without the paths.
func (p *paths) removeFrom(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range p.below {
			name, ok := key.(string)
			inner, there := v[name]
			switch {
			case !ok || !there:
			case below.all:
				delete(v, name)
			default:
				v[name] = below.removeFrom(inner)
			}
		}
	case []any:
		gone := make([]bool, len(v))
		for key, below := range p.below {
			i, ok := key.(int)
			if i < 0 {
				i += len(v)
			}
			switch {
			case !ok || i < 0 || i >= len(v):
			case below.all:
				gone[i] = true
			default:
				v[i] = below.removeFrom(v[i])
			}
		}
		kept := slices.Clone(v)[:0]
		for i := range v {
			if !gone[i] {
				kept = append(kept, v[i])
			}
		}
		return kept
	}
	return value
}
