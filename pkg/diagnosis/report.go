// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// mostOfAKind is how many findings of one kind are told one by one: a hub can have many lost clusters for one cause.
const mostOfAKind = 20

// limit leaves the first findings of each kind, and counts the others. The report is sorted.
func (r *Report) limit(most int) {
	count := map[ID]int{}
	for _, f := range r.Findings {
		count[f.ID]++
	}
	told, kept := map[ID]int{}, []Finding{}
	for _, f := range r.Findings {
		told[f.ID]++
		switch n := told[f.ID]; {
		case n <= most:
			kept = append(kept, f)
		case n == count[f.ID]:
			kept = append(kept, Finding{ID: f.ID, Severity: f.Severity, Turn: f.Turn,
				Cause: fmt.Sprintf("There are %d more like these.", n-most)})
		}
	}
	r.Findings = kept
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@=+][A-Za-z0-9_./:@=,+-]*$`)

// word is a name as one word of a command for a shell. Others have chosen the name, so it must not become a command of its own.
func word(text string) string {
	text = oneLine(text)
	if plain.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// oneLine has nothing that ends a line or moves a cursor.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

var commands = regexp.MustCompile(`(^|\| |\(|&& )kubectl (hub )?`)

// At has the commands of a fix run where the user has asked: on another cluster they could do harm. flags are such as
// "--context=hub". A command that says itself where it is for is left as it is, and so is a comment.
func At(fix []string, flags ...string) []string {
	if len(flags) == 0 {
		return fix
	}
	where := ""
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		where += name + "=" + strings.ReplaceAll(word(value), "$", "$$") + " "
	}
	var all []string
	for _, line := range fix {
		if !strings.HasPrefix(line, "#") && !strings.Contains(line, "--context") {
			line = commands.ReplaceAllString(line, "${1}kubectl ${2}"+where)
		}
		all = append(all, line)
	}
	return all
}
