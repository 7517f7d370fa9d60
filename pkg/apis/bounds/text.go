// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"strings"
	"unicode/utf8"
)

// IsPlain reports whether a text can be printed to a terminal and written to YAML unchanged. Such a text has no control characters except tabs
// and line breaks, no line or paragraph separators of Unicode, no characters that change the direction of other text, and no invalid UTF-8.
func IsPlain(text string) bool {
	_, found := NotPlain(text)
	return !found
}

// NotPlain returns the first character of a text that IsPlain rejects.
func NotPlain(text string) (r rune, found bool) {
	for i := 0; i < len(text); {
		if c := text[i]; c >= ' ' && c < 0x7f { // the common case
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 || isOdd(r) && (r != '\r' || !strings.HasPrefix(text[i+1:], "\n")) {
			return r, true
		}
		i += size
	}
	return 0, false
}

// NotYAML returns the first character of JSON that is invalid in YAML. kubectl parses JSON as YAML for -o yaml.
func NotYAML(json string) (r rune, found bool) {
	for i := 0; i < len(json); {
		if c := json[i]; c < 0x7f { // JSON escapes those below U+0020
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(json[i:])
		if r == utf8.RuneError && size == 1 || r >= 0x7f && r <= 0x9f && r != 0x85 || r == 0xfffe || r == 0xffff {
			return r, true
		}
		i += size
	}
	return 0, false
}

// Plain returns a text in which each character that IsPlain rejects is replaced by U+FFFD.
func Plain(text string) string {
	if IsPlain(text) {
		return text
	}
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	return strings.Map(func(r rune) rune {
		if isOdd(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// isOdd reports whether IsPlain rejects a character. A carriage return is odd unless a line feed follows, which the caller checks.
func isOdd(r rune) bool {
	switch {
	case r == '\t', r == '\n':
		return false
	case r < ' ', r >= 0x7f && r <= 0x9f: // C0, DEL and C1
		return true
	case r == 0x2028, r == 0x2029: // line and paragraph separators
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // embeddings, overrides and isolates
		return true
	case r == 0xfffe, r == 0xffff: // not characters, and invalid in YAML
		return true
	}
	return false
}
