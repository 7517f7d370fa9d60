// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"strconv"
	"strings"
)

// trim removes spaces at both ends, and nothing but spaces, as the language does.
func trim(text string) string { return strings.Trim(text, " ") }

// unquote removes a pair of quotes.
func unquote(text string) string {
	if len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"' {
		return text[1 : len(text)-1]
	}
	return text
}

// split returns the texts between commas. Text without one is one part.
func split(text string) []string {
	parts := strings.Split(text, ",")
	for i, part := range parts {
		parts[i] = unquote(trim(part))
	}
	return parts
}

// bare removes all spaces and quotes around a text, however they are nested. Texts that are equal in the language are equal when bare.
func bare(text string) string {
	for {
		less := unquote(trim(text))
		if less == text {
			return text
		}
		text = less
	}
}

// Keys begin with the kind of the value: the number 1, the boolean 1 and the text 1 are not the same.

func numberKey(float float64) string {
	return "n:" + strconv.FormatFloat(float+0, 'g', -1, 64)
}

func booleanKey(boolean bool) string { return "b:" + strconv.FormatBool(boolean) }

func textKey(text string) string { return "s:" + bare(text) }

func (v *value) keys() []string {
	switch v.kind {
	case number:
		return []string{numberKey(v.number)}
	case boolean:
		return []string{booleanKey(v.boolean)}
	}
	keys := []string{textKey(v.text)}
	for _, part := range v.parts {
		keys = append(keys, textKey(part))
	}
	return unique(keys)
}

// unique removes duplicates.
func unique(all []string) []string {
	seen := make(map[string]bool, len(all))
	kept := all[:0]
	for _, one := range all {
		if !seen[one] {
			seen[one] = true
			kept = append(kept, one)
		}
	}
	return kept
}
