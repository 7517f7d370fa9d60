// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/clusterhub/clusterhub/pkg/expression"
	"github.com/clusterhub/clusterhub/pkg/placement/fleet"
)

const (
	// selectorCost limits all expressions of one selector for one cluster.
	selectorCost = 10_000_000

	clusterVariable = "managedCluster"
	scoresFunction  = "scores"
	scoresOverload  = "cluster_scores"
	jsonOverload    = "parse_json_string"
)

// environment has what Open Cluster Management offers in placements, in addition to the libraries.
var environment = sync.OnceValues(func() (*expression.Environment, error) {
	return expression.NewEnvironment(
		map[string]expression.Cost{scoresOverload: costOfScores, jsonOverload: costOfJSON},
		cel.Variable(clusterVariable, cel.MapType(cel.StringType, cel.DynType)),
		cel.Function(scoresFunction, cel.MemberOverload(scoresOverload,
			[]*cel.Type{cel.DynType, cel.StringType}, cel.ListType(cel.DynType), cel.BinaryBinding(scoresOf))),
		cel.Function("parseJSON", cel.MemberOverload(jsonOverload,
			[]*cel.Type{cel.StringType}, cel.DynType, cel.UnaryBinding(parseJSON))),
	)
})

// clusterValue is the variable managedCluster: a map with the cluster's name, to find its scores.
type clusterValue struct {
	traits.Mapper
	name   string
	scores fleet.Scores
}

func scoresOf(receiver, resource ref.Val) ref.Val {
	c, ok := receiver.(*clusterValue)
	if !ok {
		return types.NewErr("scores is a function of managedCluster")
	}
	name, ok := resource.Value().(string)
	if !ok || c.scores == nil {
		return types.NewErr("no AddOnPlacementScore is known")
	}
	found := c.scores.Score(c.name, name)
	if found == nil {
		return types.NewErr("the cluster has no AddOnPlacementScore %s", name)
	}
	items := make([]ref.Val, len(found.Status.Scores))
	for i := range items {
		items[i] = types.NewStringInterfaceMap(types.DefaultTypeAdapter, map[string]any{
			"name": found.Status.Scores[i].Name, "value": int64(found.Status.Scores[i].Value),
		})
	}
	return types.NewRefValList(types.DefaultTypeAdapter, items)
}

func parseJSON(text ref.Val) ref.Val {
	s, ok := text.Value().(string)
	if !ok {
		return types.NewErr("parseJSON takes a string")
	}
	var value any
	if err := json.Unmarshal([]byte(s), &value); err != nil {
		return types.NewErr("not JSON: %v", err)
	}
	return types.DefaultTypeAdapter.NativeToValue(value)
}

func costOfScores(_ []ref.Val, result ref.Val) uint64 {
	if list, ok := result.(traits.Sizer); ok {
		return 1 + uint64(list.Size().(types.Int))
	}
	return 1
}

func costOfJSON(args []ref.Val, _ ref.Val) uint64 {
	if text, ok := args[0].(types.String); ok {
		// The parsed value is larger than its text.
		return 1 + uint64(len(text))
	}
	return 1
}

// CheckExpression returns why a CEL expression of a predicate cannot be evaluated for any cluster, or nil.
func CheckExpression(text string) error {
	_, err := compileExpression(text, func(string) {})
	return err
}

// compileExpression also reports which AddOnPlacementScores the expression reads: it calls uses with their names, or with "" for names that are
// known only during the evaluation.
func compileExpression(text string, uses func(resource string)) (*expression.Program, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	program, err := env.Compile(text)
	if err != nil {
		return nil, err
	}
	celast.PostOrderVisit(program.AST().Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != scoresFunction {
			return
		}
		name := ""
		if args := e.AsCall().Args(); len(args) == 1 && args[0].Kind() == celast.LiteralKind {
			name, _ = args[0].AsLiteral().Value().(string)
		}
		uses(name)
	}))
	return program, nil
}

// Meter has the remaining cost for all expressions of one run. Evaluated for every cluster of a large hub, expressions within their own limits
// could take hours.
type Meter struct {
	Left uint64
	// Took is the time that they have taken.
	Took time.Duration
}

const (
	// RunCost is the part of the limit of the cost of a run that does not depend on the number of clusters. A comparison of a label costs about 5.
	RunCost = 10_000_000
	// ClusterCost is the part of the limit for each cluster.
	ClusterCost = 1_000
)

// touchCost limits the cost of checking whether a change affects a placement: above it, the change counts as affecting it.
const touchCost = 20_000

// NewMeter returns a meter with the limit of a run for a number of clusters.
func NewMeter(clusters int) *Meter { return &Meter{Left: RunCost + ClusterCost*uint64(clusters)} }

// Empty reports whether the limit is reached.
func (m *Meter) Empty() bool { return m.Left == 0 }

func (m *Meter) take(cost uint64) { m.Left -= min(cost, m.Left) }

// allTrue evaluates expressions in order. An expression that fails, is not a bool or costs more than is left counts as false.
func allTrue(ctx context.Context, expressions []*expression.Program, c *fleet.ClusterInfo, scores fleet.Scores, budget uint64, m *Meter) bool {
	if len(expressions) == 0 {
		return true
	}
	defer func(begun time.Time) { m.Took += time.Since(begun) }(time.Now())
	value, err := c.AsMap()
	if err != nil {
		return false
	}
	variables := map[string]any{clusterVariable: &clusterValue{value, c.Name(), scores}}
	for _, e := range expressions {
		if m.Empty() {
			return false
		}
		result, cost, err := e.Eval(ctx, variables)
		m.take(cost)
		if err != nil || result != types.True || cost > budget {
			return false
		}
		budget -= cost
	}
	return true
}
