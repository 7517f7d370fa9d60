// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/expression"
)

const (
	objectVariable = "object"
	resultVariable = "result"
	// maxExpression is the maximum length of an expression, in bytes: compiling a long one takes time, too.
	maxExpression = 4096
)

// errInternal reports an error that no user can fix.
var errInternal = errors.New("internal error")

var (
	ruleEnvironment = sync.OnceValues(func() (*expression.Environment, error) {
		return environment()
	})
	messageEnvironment = sync.OnceValues(func() (*expression.Environment, error) {
		return environment(cel.Variable(resultVariable, cel.BoolType))
	})
)

func environment(more ...cel.EnvOption) (*expression.Environment, error) {
	return expression.NewEnvironment(nil, append(more,
		cel.Variable(objectVariable, cel.DynType),
		cel.Function("hasConditions", cel.Overload("status_has_conditions",
			[]*cel.Type{cel.DynType}, cel.BoolType, cel.UnaryBinding(hasConditions))),
	)...)
}

// hasConditions reports whether a status has conditions. It accepts any value.
func hasConditions(value ref.Val) ref.Val {
	status, ok := value.(traits.Mapper)
	if !ok {
		return types.False
	}
	found, ok := status.Find(types.String("conditions"))
	if !ok {
		return types.False
	}
	list, ok := found.(traits.Lister)
	return types.Bool(ok && list.Size() != types.IntZero)
}

// expr is a compiled expression, or the error of compiling it.
type expr struct {
	program *expression.Program
	err     error
}

func compile(in func() (*expression.Environment, error), text string) expr {
	if len(text) > maxExpression {
		return expr{err: fmt.Errorf("expected an expression of at most %d bytes, got %d", maxExpression, len(text))}
	}
	env, err := in()
	if err != nil {
		return expr{err: fmt.Errorf("%w: %w", errInternal, err)}
	}
	program, err := env.Compile(text)
	return expr{program, err}
}

func (e *expr) eval(ctx context.Context, variables map[string]any, m *meter) (ref.Val, error) {
	if e.err != nil {
		return nil, e.err
	}
	if m.left == 0 {
		return nil, errBudget
	}
	return m.take(e.program.Eval(ctx, variables))
}

type kindCondition struct {
	kind      schema.GroupVersionKind
	condition string
}

// wellKnown returns the rules for the conditions of the type WellKnownConditions.
var wellKnown = sync.OnceValues(func() (map[kindCondition]*compiledRule, error) {
	known := map[kindCondition]*compiledRule{}
	for _, one := range []struct {
		kind                schema.GroupVersionKind
		expression, message string
	}{
		{
			schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"},
			`hasConditions(object.?status.orValue(null)) &&
				object.status.conditions.exists(c, c.type in ["Complete", "Failed"] && c.status == "True")`,
			`result ? "Job is finished" : "Job is not finished"`,
		},
		{
			schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
			`object.?status.?phase.orValue("") in ["Succeeded", "Failed"]`,
			`"Pod is in phase " + object.?status.?phase.orValue("Unknown")`,
		},
	} {
		message := compile(messageEnvironment, one.message)
		r := &compiledRule{expressions: []expr{compile(ruleEnvironment, one.expression)}, message: &message}
		if err := errors.Join(r.expressions[0].err, message.err); err != nil {
			return nil, err
		}
		known[kindCondition{one.kind, workv1.ManifestComplete}] = r
	}
	return known, nil
})
