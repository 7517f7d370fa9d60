// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package iampolicy

import (
	"fmt"
	"github.com/clusterhub/clusterhub/test/fakeaws/api"
	"regexp"
	"slices"
	"strings"
)

// Context has the values of the condition keys of a request. Keys are in lower case.
type Context map[string][]string

func (c Context) Set(key string, values ...string) { c[strings.ToLower(key)] = values }

type condition struct {
	test                     func(wanted, got string) bool
	negated, ifExists, null  bool
	forAnyValue, forAllValue bool
	key                      string
	wanted                   []string
}

// operators are the supported condition operators, in lower case, without their negations.
var operators = map[string]func(wanted, got string) bool{
	"stringequals":           func(wanted, got string) bool { return wanted == got },
	"stringequalsignorecase": strings.EqualFold,
	"stringlike":             Like,
	"arnequals":              arnLike,
	"arnlike":                arnLike,
	"bool":                   strings.EqualFold,
}

// arnLike compares ARNs part by part: a wildcard does not match a colon, except in the last part.
func arnLike(wanted, got string) bool {
	const parts = 6
	w, g := strings.SplitN(wanted, ":", parts), strings.SplitN(got, ":", parts)
	if len(w) != parts || len(g) != parts {
		return false
	}
	for i := range w {
		if !Like(w[i], g[i]) {
			return false
		}
	}
	return true
}

func newCondition(operator, key string, wanted []string) (*condition, error) {
	c := &condition{key: strings.ToLower(key), wanted: wanted}
	name := strings.ToLower(operator)
	name, c.forAnyValue = strings.CutPrefix(name, "foranyvalue:")
	name, c.forAllValue = strings.CutPrefix(name, "forallvalues:")
	name, c.ifExists = strings.CutSuffix(name, "ifexists")
	if name == "null" {
		c.null = true
		return c, nil
	}
	for _, kind := range []string{"string", "arn"} {
		if rest, ok := strings.CutPrefix(name, kind+"not"); ok {
			name, c.negated = kind+rest, true
		}
	}
	c.test = operators[name]
	if c.test == nil {
		return nil, api.Malformed("Invalid Condition type : %s (or one that fakeaws does not know)", operator)
	}
	return c, nil
}

func (c *condition) holds(ctx Context) bool {
	got := ctx[c.key]
	if c.null {
		return slices.Contains(c.wanted, fmt.Sprint(len(got) == 0))
	}
	if len(got) == 0 {
		return c.ifExists || c.negated || c.forAllValue
	}
	matches := func(value string) bool {
		return slices.ContainsFunc(c.wanted, func(wanted string) bool { return c.test(ctx.expand(wanted), value) }) != c.negated
	}
	if c.forAllValue || (c.negated && !c.forAnyValue) {
		return !slices.ContainsFunc(got, func(value string) bool { return !matches(value) })
	}
	return slices.ContainsFunc(got, matches)
}

var policyVariable = regexp.MustCompile(`\$\{([^}]+)\}`)

// expand replaces policy variables, such as ${aws:PrincipalTag/team}.
func (c Context) expand(text string) string {
	return policyVariable.ReplaceAllStringFunc(text, func(variable string) string {
		if v := c[strings.ToLower(variable[2:len(variable)-1])]; len(v) == 1 {
			return v[0]
		}
		return variable
	})
}
