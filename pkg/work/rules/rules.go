// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rules evaluates the conditionRules of a work, which set conditions by the state of objects. Rules are compiled once, and evaluated whenever
// an object changes.
package rules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/google/cel-go/common/types/ref"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/work/readable"
	"github.com/clusterhub/clusterhub/pkg/work/readiness"
	"github.com/clusterhub/clusterhub/pkg/work/status"
)

// Budget is the maximum cost of all rules together for one object. A rule that checks a condition costs about 50.
const Budget = 1_000_000

// errBudget has the message of Open Cluster Management.
var errBudget = errors.New("CEL evaluation budget exceeded")

// Set is the compiled rules for an object. It can be used from several goroutines.
type Set struct {
	rules []compiledRule
	// bytes is the number of bytes that were compiled, until Compiled is called.
	bytes atomic.Int64
}

type compiledRule struct {
	kind        workv1.ConditionRuleType
	condition   string
	expressions []expr
	// message is nil without a messageExpression.
	message *expr
	text    string
}

// Compile compiles rules. An expression that does not compile is reported in a condition when the rule is evaluated. Rules for conditions that the
// agent itself writes, or with invalid types, are left out.
func Compile(from []workv1.ConditionRule) *Set {
	s := &Set{}
	for i := range from {
		r := &from[i]
		if !status.Makes(r.Condition) {
			continue
		}
		compiled := compiledRule{kind: r.Type, condition: r.Condition, text: r.Message}
		if r.Type == workv1.CelConditionExpressionsType {
			for _, text := range r.CelExpressions {
				s.bytes.Add(int64(len(text)))
				compiled.expressions = append(compiled.expressions, compile(ruleEnvironment, text))
			}
		}
		if r.MessageExpression != "" {
			s.bytes.Add(int64(len(r.MessageExpression)))
			message := compile(messageEnvironment, r.MessageExpression)
			compiled.message = &message
		}
		s.rules = append(s.rules, compiled)
	}
	return s
}

// Compiled returns the number of bytes of expressions that were compiled for the set at the first call, and then 0.
func (s *Set) Compiled() int { return int(s.bytes.Swap(0)) }

// Evaluate returns the conditions of an object, without times and generations, and their cost: callers that evaluate often delay the next call
// accordingly. It returns an error only if the context has ended.
func (s *Set) Evaluate(ctx context.Context, object *unstructured.Unstructured) (conditions []metav1.Condition, cost uint64, err error) {
	if len(s.rules) == 0 {
		return nil, 0, nil
	}
	m := &meter{left: Budget}
	fields, whole := readable.Of(object)
	seen := &observedObject{object.GroupVersionKind(), fields, nil}
	if whole {
		seen.object = object
	}
	for i := range s.rules {
		if c := s.rules[i].evaluate(ctx, seen, m); c != nil {
			c.Message = status.Cut(c.Message)
			conditions = append(conditions, *c)
		}
	}
	if err := ctx.Err(); err != nil {
		// Interrupted rules give no information about the object.
		return nil, Budget - m.left, err
	}
	return conditions, Budget - m.left, nil
}

// observedObject is the readable part of an object. object is nil if that is not all of it.
type observedObject struct {
	kind   schema.GroupVersionKind
	fields map[string]any
	object *unstructured.Unstructured
}

// evaluate returns nil for a well-known condition that the kind does not have.
func (r *compiledRule) evaluate(ctx context.Context, o *observedObject, m *meter) *metav1.Condition {
	c := &metav1.Condition{Type: r.condition, Status: metav1.ConditionUnknown, Reason: workv1.ConditionRuleInvalid}
	expressions, message := r.expressions, r.message
	switch r.kind {
	case workv1.CelConditionExpressionsType:
		if len(expressions) == 0 {
			c.Message = "expected celExpressions, got none"
			return c
		}
	case workv1.WellKnownConditionsType:
		known, err := wellKnown()
		if err != nil {
			c.Reason, c.Message = workv1.ConditionRuleInternalError, err.Error()
			return c
		}
		of := known[kindCondition{o.kind, r.condition}]
		if of == nil {
			return r.byReadiness(ctx, o, m)
		}
		expressions = of.expressions
		if message == nil && r.text == "" {
			message = of.message
		}
	default:
		c.Message = fmt.Sprintf("unrecognized condition rule type %s", r.kind)
		return c
	}
	result, err := all(ctx, expressions, o.fields, m)
	switch {
	case err == nil:
		c.Status, c.Reason = statusOf(result), workv1.ConditionRuleEvaluated
		c.Message = r.messageOf(ctx, message, result, o.fields, m)
	case errors.Is(err, errInternal):
		c.Reason, c.Message = workv1.ConditionRuleInternalError, err.Error()
	default:
		// A condition that could not be evaluated is not true.
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, workv1.ConditionRuleExpressionError, err.Error()
	}
	return c
}

// byReadiness evaluates Progressing and Degraded for any kind. For a failed object both are true: so rollouts count it as a failure, while with
// Progressing alone they would wait for it.
func (r *compiledRule) byReadiness(ctx context.Context, o *observedObject, m *meter) *metav1.Condition {
	if o.object == nil || (r.condition != workv1.ManifestProgressing && r.condition != workv1.ManifestDegraded) {
		return nil
	}
	state, why := readiness.Of(o.object)
	result := state == readiness.Failed || (state == readiness.Waiting && r.condition == workv1.ManifestProgressing)
	c := &metav1.Condition{Type: r.condition, Status: statusOf(result), Reason: workv1.ConditionRuleEvaluated, Message: why}
	if r.message != nil || r.text != "" {
		c.Message = r.messageOf(ctx, r.message, result, o.fields, m)
	}
	return c
}

func statusOf(result bool) metav1.ConditionStatus {
	if result {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// all stops at the first expression that is false.
func all(ctx context.Context, expressions []expr, fields map[string]any, m *meter) (bool, error) {
	for i := range expressions {
		value, err := expressions[i].eval(ctx, map[string]any{objectVariable: fields}, m)
		if err != nil {
			return false, err
		}
		result, ok := value.Value().(bool)
		if !ok {
			return false, fmt.Errorf("expected bool result, got %T", value.Value())
		}
		if !result {
			return false, nil
		}
	}
	return true, nil
}

// messageOf returns the message of the rule. An error in it does not change the condition.
func (r *compiledRule) messageOf(ctx context.Context, message *expr, result bool, fields map[string]any, m *meter) string {
	if message != nil {
		value, err := message.eval(ctx, map[string]any{objectVariable: fields, resultVariable: result}, m)
		if err != nil {
			// The lines that show the position are removed.
			text, _, _ := strings.Cut(err.Error(), "\n | ")
			return text
		}
		switch text := value.Value().(type) {
		case string:
			if text != "" {
				return text
			}
		default:
			return fmt.Sprintf("expected message expression to have a string result, got %T", text)
		}
	}
	switch {
	case r.text != "":
		return r.text
	case result:
		return "Manifest is " + r.condition
	}
	return "Manifest is not " + r.condition
}

// meter counts the cost that all expressions of an object may still have.
type meter struct{ left uint64 }

func (m *meter) take(value ref.Val, cost uint64, err error) (ref.Val, error) {
	if cost > m.left {
		m.left = 0
		return nil, errBudget
	}
	m.left -= cost
	return value, err
}
