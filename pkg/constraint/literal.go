// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// form is the form in which a value is written.
type form int

const (
	word form = iota
	plainNumber
	plainVersion
	rangeOfVersions
	quotedText
	quotedList
)

// value reads a value. The caller checks whether the operator allows it.
func (p *parser) value() (string, form, *Error) {
	start := p.at
	if start == len(p.input) {
		return "", word, p.fail(start, "a value")
	}
	switch p.input[start] {
	case '"':
		return p.quoted()
	case '[', '(':
		return p.versionRange()
	}
	literal, form := p.word(), word
	switch {
	case literal == "":
		return "", form, p.fail(start, "a value: a word, a number, a version, text in double quotes, or a range of versions")
	case literal == "in":
		return "", form, p.fail(start, `a value, which is not "in" without quotes`)
	case dotted(literal) == len(literal):
		form = plainVersion
	case numeric(literal) == len(literal):
		form = plainNumber
	case likeNumber(literal):
		return "", form, p.failFound(start, "double quotes around a value that begins as a number does", literal)
	}
	return literal, form, nil
}

// quoted reads text in double quotes. It cannot contain a double quote.
func (p *parser) quoted() (string, form, *Error) {
	start, form := p.at, quotedText
	for p.at++; p.at < len(p.input); {
		r, size := utf8.DecodeRuneInString(p.input[p.at:])
		switch {
		case r == '"' && p.at == start+1:
			return "", form, p.fail(p.at, "at least one character between the quotes")
		case r == '"':
			p.at++
			return p.input[start:p.at], form, nil
		case r == ',':
			form = quotedList
		case !isWord(r) && r != ' ' && r != '\t':
			return "", form, p.fail(p.at, "a letter, a digit, a space, a comma, one of _-/!?+~'. or the closing quote")
		}
		p.at += size
	}
	return "", form, p.fail(p.at, "the closing quote")
}

// versionRange reads a range, such as [1.0.0,2.0.0).
func (p *parser) versionRange() (string, form, *Error) {
	start := p.at
	p.at++
	if err := p.fullVersion("a version of three numbers"); err != nil {
		return "", rangeOfVersions, err
	}
	if p.at == len(p.input) || p.input[p.at] != ',' {
		return "", rangeOfVersions, p.fail(p.at, "a comma, without spaces")
	}
	p.at++
	if strings.HasPrefix(p.input[p.at:], infinity) {
		p.at += len(infinity)
	} else if err := p.fullVersion("a version of three numbers, or INFINITY, without spaces"); err != nil {
		return "", rangeOfVersions, err
	}
	if p.at == len(p.input) || p.input[p.at] != ']' && p.input[p.at] != ')' {
		return "", rangeOfVersions, p.fail(p.at, "] or ) at the end of the range")
	}
	p.at++
	return p.input[start:p.at], rangeOfVersions, nil
}

// fullVersion reads a version of exactly three numbers.
func (p *parser) fullVersion(expected string) *Error {
	length := dotted(p.input[p.at:])
	fields := strings.Split(p.input[p.at:p.at+length], ".")
	if len(fields) != 3 || fields[0] == "" || fields[1] == "" || fields[2] == "" {
		return p.fail(p.at, expected)
	}
	p.at += length
	return nil
}

// likeNumber reports whether text begins as a number, or as a version: the rest is then never part of a word.
func likeNumber(text string) bool { return numeric(text) > 0 || dotted(text) > 0 }

// numeric returns the length of the number at the beginning of text: a sign, digits, and an optional point with digits.
func numeric(text string) int {
	at := 0
	if strings.HasPrefix(text, "-") {
		at++
	}
	whole := skipDigits(text, at)
	if whole == at {
		return 0
	}
	if whole < len(text) && text[whole] == '.' {
		if end := skipDigits(text, whole+1); end > whole+1 {
			return end
		}
	}
	return whole
}

// dotted returns the length of the version at the beginning of text: digits between two dots and on both sides of them, or no digits there.
func dotted(text string) int {
	at := 0
	for range 2 {
		at = skipDigits(text, at)
		if at == len(text) || text[at] != '.' {
			return 0
		}
		at++
	}
	return skipDigits(text, at)
}

func skipDigits(text string, at int) int {
	for at < len(text) && text[at] >= '0' && text[at] <= '9' {
		at++
	}
	return at
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// isWord reports whether names, and values without quotes, can contain a character. Beyond ASCII these are letters, marks, numbers, currency signs,
// and the wide and narrow forms of East Asian scripts.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0 && strings.ContainsRune("_-/!?+~'.", r)
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.Sc) || r >= 0xFF01 && r <= 0xFF9F
}
