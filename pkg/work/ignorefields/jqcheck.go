// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ignorefields

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// functions are the functions that name fields, or select them by their values, with the number of their arguments. None creates a value that is
// larger than its input, and none takes long.
var functions = map[string]int{
	"select": 1, "empty": 0, "not": 0, "first": 1, "any": 1, "all": 1,
	"has": 1, "type": 0, "length": 0, "startswith": 1, "endswith": 1,
	"arrays": 0, "objects": 0, "iterables": 0, "scalars": 0, "strings": 0, "numbers": 0, "booleans": 0, "nulls": 0, "values": 0,
}

var operators = []gojq.Operator{
	gojq.OpPipe, gojq.OpComma, gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe, gojq.OpAnd, gojq.OpOr, gojq.OpAlt,
}

// checkQuery allows expressions that name fields. Other features of jq have no bounds: one line of jq can create a text of gigabytes.
func checkQuery(q *gojq.Query) error {
	switch {
	case q == nil:
		return nil
	case q.Meta != nil || len(q.Imports) > 0 || len(q.FuncDefs) > 0 || len(q.Patterns) > 0:
		return errors.New("expected a path, got imports, definitions or variables")
	case q.Term != nil:
		return checkTerm(q.Term)
	case q.Op == 0:
		// Such an operator cannot even be printed.
		return errors.New("expected a path, got an empty expression")
	case !slices.Contains(operators, q.Op):
		return fmt.Errorf("expected a path, got the operator %s", q.Op)
	}
	return errors.Join(checkQuery(q.Left), checkQuery(q.Right))
}

func checkTerm(t *gojq.Term) (err error) {
	switch t.Type {
	case gojq.TermTypeIdentity, gojq.TermTypeRecurse, gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber:
	case gojq.TermTypeIndex:
		err = checkIndex(t.Index)
	case gojq.TermTypeString:
		err = checkString(t.Str)
	case gojq.TermTypeQuery:
		err = checkQuery(t.Query)
	case gojq.TermTypeUnary:
		err = checkTerm(t.Unary.Term)
	case gojq.TermTypeFunc:
		if arguments, ok := functions[t.Func.Name]; !ok || arguments != len(t.Func.Args) {
			return fmt.Errorf("expected one of the functions %s, got %s with %d arguments",
				strings.Join(slices.Sorted(maps.Keys(functions)), ", "), t.Func.Name, len(t.Func.Args))
		}
		for _, argument := range t.Func.Args {
			err = errors.Join(err, checkQuery(argument))
		}
	case gojq.TermTypeIf:
		err = errors.Join(checkQuery(t.If.Cond), checkQuery(t.If.Then), checkQuery(t.If.Else))
		for _, elif := range t.If.Elif {
			err = errors.Join(err, checkQuery(elif.Cond), checkQuery(elif.Then))
		}
	default:
		return errors.New("expected a path such as .spec.containers[].image, got an expression that computes a value")
	}
	for _, suffix := range t.SuffixList {
		err = errors.Join(err, checkIndex(suffix.Index))
	}
	return err
}

func checkIndex(i *gojq.Index) error {
	switch {
	case i == nil:
		return nil
	case i.IsSlice:
		return errors.New("expected single items of lists such as [0], got a slice")
	}
	return errors.Join(checkString(i.Str), checkQuery(i.Start), checkQuery(i.End))
}

func checkString(s *gojq.String) error {
	if s != nil && len(s.Queries) > 0 {
		return errors.New("expected a plain text, got one with an expression in it")
	}
	return nil
}
