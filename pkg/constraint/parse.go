// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Parse parses expressions. An error is an *Error, about the first fault.
func Parse(expressions []string) (*Constraints, error) {
	if len(expressions) > MaxExpressions {
		return nil, &Error{Expression: -1, Expected: fmt.Sprintf("at most %d expressions", MaxExpressions), Found: strconv.Itoa(len(expressions))}
	}
	constraints := &Constraints{}
	terms := 0
	for i, expression := range expressions {
		if len(expression) > MaxExpressionLength {
			return nil, &Error{
				Expression: i, Expected: fmt.Sprintf("at most %d bytes", MaxExpressionLength), Found: fmt.Sprintf("%d bytes", len(expression)),
			}
		}
		p := &parser{input: expression, expression: i, terms: terms}
		root, err := p.whole()
		if err != nil {
			return nil, err
		}
		terms = p.terms
		constraints.expressions = append(constraints.expressions, root)
	}
	return constraints, nil
}

// parser parses one expression, from left to right, without going back further than a name.
type parser struct {
	input string
	// at is the offset of the next character.
	at         int
	expression int
	// terms is the number of comparisons so far, including those of earlier expressions.
	terms int
}

func (p *parser) whole() (*exprNode, error) {
	root, err := p.alternatives(0)
	if err == nil && p.at < len(p.input) {
		err = p.fail(p.at, "no closing parenthesis, as none is open")
	}
	if err != nil {
		return nil, err
	}
	return root, nil
}

// alternatives parses until the end, or until a closing parenthesis, which it does not consume.
func (p *parser) alternatives(depth int) (*exprNode, *Error) {
	all, together := &exprNode{kind: either}, &exprNode{kind: both}
	after := ""
	for {
		p.space()
		if p.ended() {
			together.children = append(together.children, &exprNode{kind: empty, position: p.position(p.at), after: after})
			break
		}
		operand, err := p.operand(depth)
		if err != nil {
			return nil, err
		}
		together.children = append(together.children, operand)
		before := p.at
		p.space()
		if p.ended() {
			break
		}
		after = p.conjunction()
		if after == "" || before == p.at {
			return nil, p.fail(p.at, "a space and AND, OR, && or ||, or the end")
		}
		p.at += len(after)
		if p.at == len(p.input) || !isSpace(p.input[p.at]) {
			return nil, p.fail(p.at, "a space after "+after)
		}
		if after == "OR" || after == "||" {
			all.children = append(all.children, together.only())
			together = &exprNode{kind: both}
		}
	}
	all.children = append(all.children, together.only())
	return all.only(), nil
}

// operand parses an expression in parentheses, or a comparison.
func (p *parser) operand(depth int) (*exprNode, *Error) {
	if p.input[p.at] != '(' {
		return p.comparison()
	}
	if depth == MaxDepth {
		return nil, p.fail(p.at, fmt.Sprintf("parentheses at most %d deep", MaxDepth))
	}
	p.at++
	inner, err := p.alternatives(depth + 1)
	if err != nil {
		return nil, err
	}
	if p.at == len(p.input) {
		return nil, p.fail(p.at, "a closing parenthesis")
	}
	p.at++
	if inner.kind == empty && inner.after == "" {
		inner.after = "("
	}
	return inner, nil
}

// conjunction returns the next token if it is AND, OR, && or ||.
func (p *parser) conjunction() string {
	for _, one := range []string{"AND", "OR", "&&", "||"} {
		if strings.HasPrefix(p.input[p.at:], one) {
			return one
		}
	}
	return ""
}

// comparison parses a name, an operator and a value.
func (p *parser) comparison() (*exprNode, *Error) {
	start := p.at
	if p.terms == MaxTerms {
		return nil, p.fail(start, fmt.Sprintf("at most %d comparisons in all expressions", MaxTerms))
	}
	p.terms++
	name := p.word()
	if name == "" || likeNumber(name) {
		return nil, p.fail(start, "the name of a property, which does not begin as a number does, or a parenthesis")
	}
	afterName := p.at
	p.space()
	op, symbol := p.operator(p.at > afterName)
	glued := op == noOperator && len(name) > len("in") && strings.HasSuffix(name, "in")
	if glued {
		name, op, symbol = strings.TrimSuffix(name, "in"), in, "in"
	}
	if op == noOperator {
		return nil, p.fail(p.at, "an operator: ==, =, !=, <, >, <=, >= or in")
	}
	if name == "in" {
		return nil, p.fail(start, `the name of a property, which is not "in"`)
	}
	p.at += len(symbol)
	if glued {
		// It has been read with the name.
		p.at = afterName
	}
	p.space()
	valueAt := p.at
	literal, form, err := p.value()
	if err != nil {
		return nil, err
	}
	if expected := op.expects(literal, form); expected != "" {
		if glued && form == word {
			return nil, p.fail(valueAt, "an operator: ==, =, !=, <, >, <=, >= or in")
		}
		return nil, p.failFound(valueAt, fmt.Sprintf("after %s %s", symbol, expected), literal)
	}
	return &exprNode{kind: leaf, position: p.position(start), term: newTerm(name, op, symbol, literal)}, nil
}

// operator returns the next operator. It is "in" only after a space: without one, that is the end of the name.
func (p *parser) operator(space bool) (operator, string) {
	// The longer ones first.
	for _, one := range operators {
		if strings.HasPrefix(p.input[p.at:], one.symbol) && (one.operator != in || space) {
			return one.operator, one.symbol
		}
	}
	return noOperator, ""
}

// word reads as many characters as a name or a value without quotes can have.
func (p *parser) word() string {
	start := p.at
	for p.at < len(p.input) {
		r, size := utf8.DecodeRuneInString(p.input[p.at:])
		if !isWord(r) {
			break
		}
		p.at += size
	}
	return p.input[start:p.at]
}

func (p *parser) space() {
	for p.at < len(p.input) && isSpace(p.input[p.at]) {
		p.at++
	}
}

// ended reports whether this expression, or the one in parentheses, ends here.
func (p *parser) ended() bool { return p.at == len(p.input) || p.input[p.at] == ')' }

// position converts an offset to a position in characters, from 1.
func (p *parser) position(offset int) int { return utf8.RuneCountInString(p.input[:offset]) + 1 }

func (p *parser) fail(offset int, expected string) *Error {
	rest := p.input[offset:]
	if rest == "" {
		return &Error{Expression: p.expression, Position: p.position(offset), Expected: expected, Found: "the end"}
	}
	// A word, or one character.
	p.at = offset
	found := p.word()
	if found == "" {
		_, size := utf8.DecodeRuneInString(rest)
		found = rest[:size]
	}
	return p.failFound(offset, expected, found)
}

func (p *parser) failFound(offset int, expected, found string) *Error {
	return &Error{Expression: p.expression, Position: p.position(offset), Expected: expected, Found: strconv.Quote(short(found))}
}
