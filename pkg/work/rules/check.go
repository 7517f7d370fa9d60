// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/google/cel-go/common/types"

	"github.com/clusterhub/clusterhub/pkg/expression"
)

// CheckExpression checks one of the celExpressions of a rule without an object. fault is an error for every agent, and unknown reports a name that
// agents of this version do not know.
func CheckExpression(text string) (fault, unknown error) {
	return check(ruleEnvironment, text, types.BoolKind)
}

// CheckMessage checks a messageExpression in the same way.
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
