// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"regexp"
	"strings"
)

var (
	// progress matches the output of a command that waits, on a slow machine.
	progress = regexp.MustCompile(`(?m)^Waiting for .*\.\.\. \(\d+m?s\)\n`)
	// loopback matches the warning about a hub that only this machine reaches.
	loopback = regexp.MustCompile(`(?m)^Warning: .* is this machine: .*\n`)
	// changing has patterns of output that differs between runs, and their replacements.
	changing = []struct {
		pattern *regexp.Regexp
		as      string
	}{
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "<time>"},
		{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "<time>"},
		{regexp.MustCompile(`\b(?:\d+[dhms])+\b`), "<duration>"},
		{regexp.MustCompile(`\b127\.0\.0\.1:\d+`), "127.0.0.1:<port>"},
		{regexp.MustCompile(`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "<uid>"},
	}
	separator = regexp.MustCompile(`[-:/.,()"]`)
	generated = regexp.MustCompile(`^[a-z0-9]{5,10}$`)
	digit     = regexp.MustCompile(`[0-9]`)
	letter    = regexp.MustCompile(`[a-z]`)
)

// Differs returns the first word of what a page says that is not in what a command printed, or of what it printed that the page does not
// say; or "", where both are the same. How words are spread over lines does not matter. In the page, … stands for anything: for the
// rest of a word in it, for any words where it is one itself, and for all that follows at the end. Times, durations, ports and names that are generated may differ.
func Differs(want, got string) string {
	w := words(want)
	if len(w) > 0 && strings.HasSuffix(w[len(w)-1], "…") {
		w = append(w, "…") // the page shows the beginning
	}
	return differ(w, words(got))
}

func words(text string) []string {
	text = loopback.ReplaceAllString(progress.ReplaceAllString(text+"\n", ""), "")
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.as)
	}
	return strings.Fields(text)
}

// differ goes back to the last … when what follows it does not fit.
func differ(want, got []string) string {
	w, g, anyW, anyG, farthest := 0, 0, -1, 0, ""
	for g < len(got) || w < len(want) {
		switch {
		case w < len(want) && want[w] == "…":
			anyW, anyG = w, g
			w++
		case w < len(want) && g < len(got) && sameWord(want[w], got[g]):
			w, g = w+1, g+1
		default:
			if farthest == "" || w < len(want) {
				farthest = told(want, w, got, g)
			}
			if anyW < 0 || anyG >= len(got) {
				return farthest
			}
			anyG++
			w, g = anyW+1, anyG
		}
	}
	return ""
}

func told(want []string, w int, got []string, g int) string {
	at := func(words []string, i int) string {
		if i >= len(words) {
			return "nothing more"
		}
		return `"` + strings.Join(words[i:min(i+3, len(words))], " ") + `"`
	}
	return "want " + at(want, w) + ", got " + at(got, g)
}

// sameWord reports whether a word matches the word of a page.
func sameWord(want, got string) bool {
	if want == got {
		return true
	}
	if before, after, is := strings.Cut(want, "…"); is {
		return len(got) >= len(before)+len(after) && strings.HasPrefix(got, before) && strings.HasSuffix(got, after)
	}
	w, g := separator.Split(want, -1), separator.Split(got, -1)
	if len(w) != len(g) {
		return false
	}
	for i := range w {
		// A name that is generated has at least one digit in the page, so that it can be told from others.
		made := generated.MatchString(w[i]) && digit.MatchString(w[i]) && letter.MatchString(w[i])
		alike := len(w[i]) == len(g[i]) || len(w[i]) >= 8 && len(g[i]) >= 8 // hashes of pods have 8 to 10
		if w[i] != g[i] && (!made || !alike || !generated.MatchString(g[i])) {
			return false
		}
	}
	return true
}
