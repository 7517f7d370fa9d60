// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"math"
	"slices"
	"strconv"
)

type operator int

const (
	noOperator operator = iota
	equal
	notEqual
	less
	greater
	lessOrEqual
	greaterOrEqual
	// reversed are operators such as =<, which compare numbers for being equal.
	reversed
	in
)

// operators are those that can be written. One that another begins with comes after that.
var operators = []struct {
	symbol   string
	operator operator
}{
	{"=<=", reversed}, {"=>=", reversed}, {"=<", reversed}, {"=>", reversed}, {"<=", lessOrEqual}, {">=", greaterOrEqual}, {"<", less},
	{">", greater}, {"==", equal}, {"=", equal}, {"!=", notEqual}, {"in", in},
}

// expects says what the operator could have instead of such a value, or nothing if it can have it.
func (o operator) expects(literal string, form form) string {
	switch o {
	case equal, notEqual:
		if form == rangeOfVersions || form == quotedList {
			return `one value (several, and ranges, are for "in")`
		}
	case in:
		if form == word || form == plainNumber {
			return "text in double quotes, or a version of three numbers, or a range of them"
		}
	default:
		if _, err := strconv.ParseFloat(literal, 64); err != nil {
			return "a number without quotes"
		}
	}
	return ""
}

// term is a comparison: a name, an operator and a value, with all that evaluating it needs.
type term struct {
	name     string
	operator operator
	// symbol is the operator as it is written, literal the value, with its quotes.
	symbol, literal string

	number    float64
	isNumber  bool
	boolean   bool
	isBoolean bool
	// text is the value without quotes around it and spaces around that; needle without another pair of each.
	text, needle string
	// parts are what is between its commas, sorted.
	parts []string
	// span is the text as a range of versions; a single version is a range, too. isRange says that it is written as one.
	span    *versionRange
	isRange bool
}

func newTerm(name string, op operator, symbol, literal string) *term {
	t := &term{name: name, operator: op, symbol: symbol, literal: literal, text: trim(unquote(literal))}
	var err error
	t.number, err = strconv.ParseFloat(literal, 64)
	t.isNumber = err == nil
	t.boolean, err = strconv.ParseBool(literal)
	t.isBoolean = err == nil
	t.needle = unquote(trim(t.text))
	if op == in {
		t.parts = split(t.text)
		slices.Sort(t.parts)
		t.span = parseRange(t.text)
		t.isRange = t.span != nil && parseVersion(t.text) == nil
	}
	return t
}

// satisfied compares. A property that is not there satisfies nothing.
func (t *term) satisfied(v *value) bool {
	switch {
	case v == nil:
		return false
	case v.kind == number:
		return t.isNumber && t.compareNumber(v.number)
	case v.kind == boolean:
		return t.isBoolean && (t.operator == equal && v.boolean == t.boolean || t.operator == notEqual && v.boolean != t.boolean)
	}
	switch t.operator {
	case equal:
		return v.text == t.text || slices.Contains(v.parts, t.needle)
	case notEqual:
		if v.declared == List {
			return !slices.Contains(v.parts, t.needle)
		}
		return v.text != t.text
	case in:
		switch {
		case v.declared == Version || v.version != nil && t.isRange:
			return v.version != nil && t.span != nil && t.span.contains(v.version)
		case v.declared == List:
			return slices.ContainsFunc(v.words, t.has)
		}
		return t.has(v.word)
	}
	return false
}

// has says whether this is one of the parts.
func (t *term) has(word string) bool {
	_, there := slices.BinarySearch(t.parts, word)
	return there
}

func (t *term) compareNumber(number float64) bool {
	switch t.operator {
	case less:
		return number < t.number
	case greater:
		return number > t.number
	case lessOrEqual:
		return number <= t.number
	case greaterOrEqual:
		return number >= t.number
	case notEqual:
		return number != t.number
	}
	return number == t.number
}

// keys are what a property must have one of to satisfy this, or none if that cannot be said.
func (t *term) keys() []string {
	var keys []string
	if (t.operator == equal || t.operator == reversed) && t.isNumber && !math.IsNaN(t.number) {
		keys = append(keys, numberKey(t.number))
	}
	if t.operator == equal && t.isBoolean {
		keys = append(keys, booleanKey(t.boolean))
	}
	switch {
	case t.operator == equal:
		keys = append(keys, textKey(t.text))
	case t.operator == in && t.span == nil:
		for _, part := range t.parts {
			keys = append(keys, textKey(part))
		}
	}
	return unique(keys)
}
