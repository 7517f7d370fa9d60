// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"regexp"
	"strings"
	"unicode"
)

// ShellCommand returns a command for a shell. Names come from objects that other users write: each is one word of the command, whatever it contains.
func ShellCommand(words ...string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = ShellWord(w)
	}
	return strings.Join(all, " ")
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@=+,-]+$`)

// ShellWord quotes a name as one word of a shell command. Other users choose the name, so it must not become a command of its own.
func ShellWord(text string) string {
	switch {
	case plain.MatchString(text):
		return text
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }):
		return "<A NAME WITH UNUSUAL CHARACTERS>" // a terminal may show a different one
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// OneLine removes characters that end a line or move the cursor.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// TrimPeriod returns a message without its final period, so that a sentence can continue after it.
func TrimPeriod(text string) string { return strings.TrimRight(strings.TrimSpace(text), ".") }

var commands = regexp.MustCompile(`(^|\| |\(|&& )kubectl (hub )?`)

// At adds flags, such as "--context=hub", to the commands of a fix, so that they run on the hub that the user has queried: on another cluster they
// could do harm. It does not change comments, or commands that name their cluster.
func At(fix []string, flags ...string) []string {
	if len(flags) == 0 {
		return fix
	}
	where := ""
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		where += name + "=" + strings.ReplaceAll(ShellWord(value), "$", "$$") + " "
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
