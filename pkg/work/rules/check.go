// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/google/cel-go/common/types"

	"github.com/clusterhub/clusterhub/pkg/expression"
)

// CheckExpression says what is wrong with one of the celExpressions of a rule, before any object is there: a fault for every agent, or a
// name that the agents of this version do not know.
func CheckExpression(text string) (fault, unknown error) {
	return check(ruleEnvironment, text, types.BoolKind)
}

// CheckMessage does so with a messageExpression.
func CheckMessage(text string) (fault, unknown error) {
	return check(messageEnvironment, text, types.StringKind)
}

func check(in func() (*expression.Environment, error), text string, kind types.Kind) (fault, unknown error) {
	env, err := in()
	if err != nil {
		return nil, err
	}
	return env.Check(text, kind)
}
