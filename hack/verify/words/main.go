// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command words counts turns of phrase that docs/design/style.md advises against, in Go comments, in strings of Go code that is no test, and in
// Markdown, and fails if a rule has more per 10,000 words than its limit:
//
//	go run ./hack/verify/words [-v] [PATH ...]
//
// With -v it prints each place, with what to write instead. With paths it looks at files below these alone, and has no limits.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// rule is a turn of phrase that has a better one.
type rule struct {
	name    string
	pattern *regexp.Regexp
	instead string
	// limit is the largest number of places per 10,000 words. Lower it when there are fewer.
	limit float64
}

// rules are those of docs/design/style.md that a pattern finds with few false positives.
var rules = []rule{
	{"cleft", regexp.MustCompile(`(?i)\b(is|are|was|were) (what|that|those that)\b`), "subject and verb, such as \"returns\" or \"reports that\"", 1.5},
	{"passive speech", regexp.MustCompile(`(?i)\b(is|are|was|were|be|been|being) (told|asked|said|heard)\b`), "the API's word: get, request, report, set", 1},
	{"is none", regexp.MustCompile(`\b(is|are|was|were|be) none\b`), "\"is not set\", \"does not exist\", \"is not a …\"", 0.5},
	{"anew", regexp.MustCompile(`(?i)\banew\b`), "again", 0.5},
	{"somebody", regexp.MustCompile(`(?i)\b(somebody|anybody|nobody|whoever)\b`), "another client, a user who, no user", 0.3},
	{"who as a subject", regexp.MustCompile(`(^|[.:;] )Who [^.?]*\.`), "a user who, users who", 0.2},
	{"meanwhile", regexp.MustCompile(`(?i)\b(meanwhile|by now|by then)\b`), "concurrently, since then, already", 0.3},
	{"is to be", regexp.MustCompile(`(?i)\b(is|are|was|were) to (be|have|do|go|come|say)\b`), "must, should, or the verb alone", 0.3},
	{"says how", regexp.MustCompile(`(?i)\b(says|say|tells|tell) (how|which|whether|who|whose|where|when|since)\b`), "a noun or a verb: defines, identifies, reports whether, is the number of", 0.6},
	{"is how many", regexp.MustCompile(`(?i)\bis (how (many|much|long|often|far|old)|since when|until when|from when)\b`), "is the number of, is the time since, is the interval", 0.2},
	{"let go", regexp.MustCompile(`(?i)\blets? [a-z ]*\b(go|be|through)\b`), "release, allow, skip, orphan", 0.2},
}

// place is one match of a rule.
type place struct {
	rule *rule
	file string
	line int
	text string
}

func main() {
	verbose := flag.Bool("v", false, "print each place")
	flag.Parse()
	if err := run(os.Stdout, *verbose, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, verbose bool, paths []string) error {
	list := exec.Command("git", append([]string{"-c", "core.quotePath=off", "ls-files", "--cached", "--others", "--exclude-standard", "--"}, paths...)...)
	list.Stderr = os.Stderr
	files, err := list.Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	words, counts := 0, map[*rule]int{}
	for file := range strings.Lines(string(files)) {
		file = strings.TrimSuffix(file, "\n")
		if isGenerated(file) {
			continue
		}
		data, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, but not committed
		} else if err != nil {
			return err
		}
		for _, s := range prose(file, data) {
			words += len(strings.Fields(s.text))
			for _, p := range find(file, s) {
				counts[p.rule]++
				if verbose {
					fmt.Fprintf(out, "%s:%d: %s: %q: write %s\n", p.file, p.line, p.rule.name, p.text, p.rule.instead)
				}
			}
		}
	}
	if exceeded := report(out, words, counts); len(paths) == 0 && len(exceeded) > 0 {
		return fmt.Errorf("there are more than the limit of: %s. Run \"go run ./hack/verify/words -v PATH\" with the files that you changed, and write what it says", strings.Join(exceeded, ", "))
	}
	return nil
}

// report prints the rate of each rule, and returns the names of the rules above their limits.
func report(out io.Writer, words int, counts map[*rule]int) (exceeded []string) {
	for i := range rules {
		r := &rules[i]
		rate := float64(counts[r]) * 10000 / float64(max(words, 1))
		fmt.Fprintf(out, "%-18s %5d, %5.1f per 10,000 words (limit %g)\n", r.name, counts[r], rate, r.limit)
		if rate > r.limit {
			exceeded = append(exceeded, r.name)
		}
	}
	return exceeded
}

// isGenerated reports whether a file has text that is written elsewhere, or none.
func isGenerated(file string) bool {
	return strings.HasPrefix(file, "pkg/generated/") || strings.HasPrefix(file, "docs/reference/") || strings.Contains(file, "zz_generated") ||
		strings.Contains(file, "testdata/") || strings.HasPrefix(file, "hack/verify/words/") || file == "docs/design/style.md"
}

// section is text without a break by something else. Its lines are joined by single spaces.
type section struct {
	line int
	text string
}

// prose returns the text of a file for people.
func prose(file string, data []byte) []section {
	switch filepath.Ext(file) {
	case ".go":
		return ofGo(file, data)
	case ".md":
		return ofMarkdown(data)
	}
	return nil
}

// directive is a comment for a tool.
var directive = regexp.MustCompile(`^(//[a-z]+:|//nolint|// ?\+|// (Copyright|SPDX))`)

// ofGo returns the comments, lines of one comment joined, and the strings with a space, unless the file is a test.
func ofGo(file string, data []byte) (all []section) {
	set := token.NewFileSet()
	source := set.AddFile(file, set.Base(), len(data))
	var s scanner.Scanner
	s.Init(source, data, nil, scanner.ScanComments)
	test, last := strings.HasSuffix(file, "_test.go"), 0
	for {
		at, kind, text := s.Scan()
		line := source.Line(at)
		switch kind {
		case token.EOF:
			return all
		case token.COMMENT:
			if directive.MatchString(text) {
				last = 0
				continue
			}
			text = strings.TrimSpace(strings.TrimSuffix(strings.TrimLeft(text, "/*"), "*/"))
			if last == line-1 && len(all) > 0 {
				all[len(all)-1].text += " " + text
			} else {
				all = append(all, section{line, text})
			}
			last = line
		case token.STRING:
			if value, err := strconv.Unquote(text); err == nil && !test && strings.Contains(value, " ") {
				all = append(all, section{line, value})
			}
		}
	}
}

// code is text of Markdown that is not prose: inline code and comments.
var code = regexp.MustCompile("`[^`]*`|<!--.*?-->")

// ofMarkdown returns the paragraphs outside of blocks of code.
func ofMarkdown(data []byte) (all []section) {
	fenced, comment, joined := false, false, false
	line := 0
	for text := range bytes.Lines(data) {
		line++
		trimmed := strings.TrimSpace(string(text))
		switch {
		case strings.HasPrefix(trimmed, "```"):
			fenced, joined = !fenced, false
		case fenced || trimmed == "":
			joined = false
		case strings.HasPrefix(trimmed, "<!--") && !strings.Contains(trimmed, "-->"):
			comment, joined = true, false
		case comment:
			comment = !strings.Contains(trimmed, "-->")
		default:
			trimmed = code.ReplaceAllString(trimmed, "X")
			starts := strings.HasPrefix(trimmed, "|") || strings.HasPrefix(trimmed, "- ") || strings.HasPrefix(trimmed, "#")
			if joined && !starts {
				all[len(all)-1].text += " " + trimmed
			} else {
				all = append(all, section{line, trimmed})
			}
			joined = true
		}
	}
	return all
}

// find returns the places where a section breaks a rule.
func find(file string, s section) (found []place) {
	for i := range rules {
		for _, at := range rules[i].pattern.FindAllStringIndex(s.text, -1) {
			from, to := max(0, at[0]-30), min(len(s.text), at[1]+30)
			found = append(found, place{&rules[i], file, s.line, strings.ToValidUTF8(s.text[from:to], "")})
		}
	}
	return found
}
