// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
)

// maxMessage is the maximum length of a reported fault, in bytes. It may quote the expression.
const maxMessage = 512

// undeclared is the prefix of cel-go's message about a name that an environment does not have.
const undeclared = "undeclared reference to"

// Check checks an expression for a program that may know more than this environment. A fault applies everywhere: the expression cannot be parsed, it
// uses a known name in a wrong way, or its result is never of the kind. unknown reports the name of a function or a variable, which another version
// may have. Both are short, and report the first problem only. The expression is not compiled for evaluation.
func (e *Environment) Check(text string, kind types.Kind) (fault, unknown error) {
	parsed, issues, err := e.parse(text)
	if issues != nil {
		return first(issues.Errors()), nil
	}
	if err != nil {
		return err, nil
	}
	checked, issues := e.env.Check(parsed)
	if issues.Err() != nil {
		all := issues.Errors()
		known := slices.DeleteFunc(slices.Clone(all), func(err *common.Error) bool { return strings.HasPrefix(err.Message, undeclared) })
		if len(known) > 0 {
			return first(known), nil
		}
		return nil, first(all)
	}
	switch made := checked.OutputType(); made.Kind() {
	case kind, types.DynKind, types.AnyKind, types.TypeParamKind:
		return nil, nil
	default:
		return fmt.Errorf("expected an expression that makes a %s, got one that makes a %s", nameOf(kind), cel.FormatCELType(made)), nil
	}
}

func nameOf(kind types.Kind) string {
	if kind == types.BoolKind {
		return "bool"
	}
	return "string"
}

// first returns the first fault, with its position.
func first(all []*common.Error) error {
	if len(all) == 0 {
		return errors.New("it cannot be read")
	}
	at, message := all[0].Location, all[0].Message
	return errors.New(strings.ToValidUTF8(fmt.Sprintf("%d:%d: %s", at.Line(), at.Column()+1, message[:min(len(message), maxMessage)]), ""))
}
