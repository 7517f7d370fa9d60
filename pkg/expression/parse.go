// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
)

// The time of a check grows with the types in the expression, and those can double with each macro: a few hundred bytes would take hours. So an
// expression is weighed between the two steps of compiling it.
const (
	// maxCopies is the maximum number of macros in an expression that copy their target: each doubles the size.
	maxCopies = 6
	// maxType is the maximum size of a type, in names: list(map(int, string)) has four.
	maxType = 32
	// maxWeight is the maximum size of the types of all parts of an expression together.
	maxWeight = 20_000
)

// optionalOf is the function that macros call to create an optional; expressions call "of" of "optional".
const optionalOf = "optional.of"

// copying are the macros that copy their target.
var copying = []string{"optMap", "optFlatMap"}

// parse is the first step of compiling. It rejects expressions that would take long to check, so all expressions to check must come from here.
func (e *Environment) parse(text string) (*cel.Ast, *cel.Issues, error) {
	copies := 0
	for _, name := range copying {
		copies += strings.Count(text, name)
	}
	if copies > maxCopies {
		return nil, nil, fmt.Errorf("expected at most %d times %s, got %d", maxCopies, strings.Join(copying, " or "), copies)
	}
	parsed, issues := e.env.Parse(text)
	if err := issues.Err(); err != nil {
		return nil, issues, err
	}
	w := &weigher{left: maxWeight, names: map[string]int{}}
	w.weigh(parsed.NativeRep().Expr())
	if w.left < 0 || w.tooLarge {
		return nil, nil, fmt.Errorf("expected types of at most %d names, and %d in all parts of the expression: lists, maps and macros inside one another have more",
			maxType, maxWeight)
	}
	return parsed, nil, nil
}

// weigher computes an upper bound for the size of the types of the parts of an expression, without checking them.
type weigher struct {
	left     int
	tooLarge bool
	// names are the variables of macros.
	names map[string]int
}

// weigh returns the size of the type of a part. Once a limit is exceeded, no other parts are visited.
func (w *weigher) weigh(e ast.Expr) (size int) {
	defer func() {
		w.left -= size
		w.tooLarge = w.tooLarge || size > maxType
	}()
	if w.left < 0 || w.tooLarge {
		return 1
	}
	size = 1
	switch e.Kind() {
	case ast.IdentKind:
		return max(size, w.names[e.AsIdent()])
	case ast.SelectKind:
		return w.weigh(e.AsSelect().Operand())
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			size = w.weigh(call.Target())
		}
		for _, arg := range call.Args() {
			size = max(size, w.weigh(arg))
		}
		if call.IsMemberFunction() && call.Target().Kind() == ast.IdentKind && call.Target().AsIdent() == "optional" || call.FunctionName() == optionalOf {
			size++
		}
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			size = max(size, 1+w.weigh(item))
		}
	case ast.MapKind:
		keys, values := 1, 1
		for _, entry := range e.AsMap().Entries() {
			keys, values = max(keys, w.weigh(entry.AsMapEntry().Key())), max(values, w.weigh(entry.AsMapEntry().Value()))
		}
		size = 1 + keys + values
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			w.weigh(field.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		return w.loop(e.AsComprehension())
	}
	return size
}

// loop returns the size of the type of a macro: the size of its accumulator's type.
func (w *weigher) loop(c ast.ComprehensionExpr) int {
	over, made := w.weigh(c.IterRange()), w.weigh(c.AccuInit())
	item := max(1, over-1) // without "list" or "map"
	size := 0
	w.with(map[string]int{c.AccuVar(): made, c.IterVar(): item, c.IterVar2(): item}, func() {
		w.weigh(c.LoopCondition())
		made = max(made, w.weigh(c.LoopStep()))
	})
	w.with(map[string]int{c.AccuVar(): made}, func() { size = w.weigh(c.Result()) })
	return size
}

// with sets variables during a function call.
func (w *weigher) with(names map[string]int, do func()) {
	before := map[string]int{}
	for name, size := range names {
		before[name] = w.names[name]
		w.names[name] = size
	}
	do()
	for name, size := range before {
		w.names[name] = size
	}
}
