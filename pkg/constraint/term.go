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
	// reversed are operators such as =<, which compare numbers for equality.
	reversed
	in
)

// operators are the operators in the order in which they are tried. An operator comes before any operator that is its prefix.
var operators = []struct {
	symbol   string
	operator operator
}{
	{"=<=", reversed}, {"=>=", reversed}, {"=<", reversed}, {"=>", reversed}, {"<=", lessOrEqual}, {">=", greaterOrEqual}, {"<", less},
	{">", greater}, {"==", equal}, {"=", equal}, {"!=", notEqual}, {"in", in},
}

// expects returns what the operator accepts instead of such a value, or "" if it accepts the value.
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

// term is a comparison: a name, an operator and a value, with all that its evaluation needs.
type term struct {
	name     string
	operator operator
	// symbol is the operator as it is written, literal the value, with its quotes.
	symbol, literal string

	number    float64
	isNumber  bool
	boolean   bool
	isBoolean bool
	// text is the value without quotes around it and spaces around these; needle without another pair of each.
	text, needle string
	// parts are the texts between its commas, sorted.
	parts []string
	// span is the text as a range of versions; a single version is a range, too. isRange reports whether it is written as one.
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

// satisfied compares the value. A missing property satisfies nothing.
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

// has reports whether this is one of the parts.
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

// keys returns the keys of which a property must have one to satisfy this, or none if they cannot be determined.
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
