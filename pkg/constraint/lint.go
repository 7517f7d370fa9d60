// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"fmt"
	"strconv"
	"strings"
)

// Warning is about a valid expression that may have a different meaning than its author intended.
type Warning struct {
	// Expression is the index of the expression in its list, from 0. It is -1 if the warning is about all of them together.
	Expression int
	// Position is the position in the expression, in characters, from 1; 0 if it is about all of them together.
	Position int
	// Code is one word for machines.
	Code Code
	// Message says what the expression does, and what to write instead.
	Message string
}

// Code names a kind of warning.
type Code string

// The kinds of warnings.
const (
	// NotEqualMissing: nodes without the property do not satisfy a != comparison.
	NotEqualMissing Code = "NotEqualMissing"
	// QuotedValue: a boolean or a number is in quotes.
	QuotedValue Code = "QuotedValue"
	// NumberAsText: a number is written in an unusual way for text.
	NumberAsText Code = "NumberAsText"
	// KubernetesVersion: a version that begins with a letter is compared as if it did not.
	KubernetesVersion Code = "KubernetesVersion"
	// MissingOperand: an operator has no operand after it, or parentheses are empty.
	MissingOperand Code = "MissingOperand"
	// ReversedOperator: the operator is =<, =>, =<= or =>=.
	ReversedOperator Code = "ReversedOperator"
	// NameWithMark: a name begins or ends with an exclamation mark.
	NameWithMark Code = "NameWithMark"
	// SingleQuotes: single quotes are part of the text.
	SingleQuotes Code = "SingleQuotes"
	// Unsatisfiable: no node can satisfy the expressions.
	Unsatisfiable Code = "Unsatisfiable"
)

// kubernetesVersion is the property with the version of a cluster, as Kubernetes writes it: v1.33.1.
const kubernetesVersion = "openhorizon.kubernetesVersion"

// Lint returns warnings about expressions that may have a different meaning than their author intended. It returns nothing for a list that Parse
// refuses.
func Lint(expressions []string) []Warning {
	constraints, err := Parse(expressions)
	if err != nil {
		return nil
	}
	return constraints.Lint()
}

// Lint returns the warnings about parsed expressions.
func (c *Constraints) Lint() []Warning {
	if c == nil {
		return nil
	}
	var warnings []Warning
	for i, expression := range c.expressions {
		expression.walk(func(n *exprNode) {
			warn := func(code Code, format string, arguments ...any) {
				warnings = append(warnings, Warning{Expression: i, Position: n.position, Code: code, Message: fmt.Sprintf(format, arguments...)})
			}
			switch {
			case n.kind == leaf:
				n.term.lint(warn)
			case n.after == "(":
				warn(MissingOperand, "There is nothing in the parentheses: they are always satisfied. Remove them.")
			case n.after != "":
				warn(MissingOperand, "There is nothing after %s: that is always satisfied. Remove %s, or add the missing part.", n.after, n.after)
			}
		})
	}
	if !c.Possible(nil) {
		warnings = append(warnings, Warning{Expression: -1, Code: Unsatisfiable, Message: "Nothing can satisfy all of this at once: it selects nothing."})
	}
	return warnings
}

func (t *term) lint(warn func(code Code, format string, arguments ...any)) {
	switch {
	case strings.HasSuffix(t.name, "!") && t.operator == equal:
		warn(NameWithMark, "This compares a property named %q for being equal. Write a space before != if that is meant.", t.name)
	case strings.HasPrefix(t.name, "!"):
		warn(NameWithMark, "This compares a property named %q: there is no negation. Write != where that is meant.", t.name)
	}
	switch t.operator {
	case notEqual:
		warn(NotEqualMissing, "A node or service without the property %q does not satisfy %s: only one that has it with another value does.", t.name, t.symbol)
	case reversed:
		meant := strings.TrimSuffix(strings.TrimPrefix(t.symbol, "="), "=") + "="
		warn(ReversedOperator, "%s compares numbers for being equal. Write %s if that is meant, or ==.", t.symbol, meant)
	}
	quoted := t.literal != unquote(t.literal)
	if t.operator == equal || t.operator == notEqual {
		switch {
		case quoted && isTrueOrFalse(t.text):
			warn(QuotedValue, "%s in quotes is text: a property that is a boolean never satisfies this. Remove the quotes if it is one.", t.literal)
		case quoted && numeric(t.text) == len(t.text) && t.text != "":
			warn(QuotedValue, "%s in quotes is text: a property that is a number never satisfies this. Remove the quotes if it is one.", t.literal)
		case !quoted && t.isNumber && likeNumber(t.text) && strconv.FormatFloat(t.number, 'f', -1, 64) != t.text:
			warn(NumberAsText, "With a property that is text, %s is compared letter by letter: it is not equal to %s.", t.text,
				strconv.FormatFloat(t.number, 'f', -1, 64))
		}
	}
	if t.name == kubernetesVersion && (t.operator == in && t.span != nil || t.operator == equal && parseVersion(t.text) != nil) {
		warn(KubernetesVersion, "Values of %s begin with a v, and may end with what a provider adds, as v1.33.1-eks-508b6b3 does: no range contains "+
			"them, and no version is equal to them. Compare with == and the whole text, or several of them with in.", t.name)
	}
	for _, part := range split(t.text) {
		if quoted && strings.HasPrefix(part, "'") && strings.HasSuffix(part, "'") {
			warn(SingleQuotes, "The single quotes are part of the text: %s is compared with them. Remove them.", part)
			break
		}
	}
}

func isTrueOrFalse(text string) bool {
	return strings.EqualFold(text, "true") || strings.EqualFold(text, "false")
}
