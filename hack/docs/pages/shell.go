// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	assignment = regexp.MustCompile(`^\w+=`)
	list       = regexp.MustCompile(`^\w+=$`) // what is before the parenthesis of one
)

// Simple are the simple commands of a text that is typed in a shell, each as its words. What is given by <<EOF, where output goes, and
// variables before a command are left out, also if they are lists: a=(b c). $(…) is one word, with what is in it.
func Simple(text string) (all [][]string, err error) {
	if heredoc.MatchString(text) {
		text, _, _ = strings.Cut(text, "\n") // what follows is for the command
	}
	var words []string
	var word strings.Builder
	inWord, redirected := false, false
	endWord := func() {
		if inWord && !redirected && (len(words) > 0 || !assignment.MatchString(word.String())) {
			words = append(words, word.String())
		}
		if inWord {
			redirected = false
		}
		word.Reset()
		inWord = false
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			all = append(all, words)
		}
		words = nil
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			i++
			if text[i] != '\n' {
				inWord = true
				word.WriteByte(text[i])
			}
		case c == '\'' || c == '"':
			length := strings.IndexByte(text[i+1:], c)
			if length < 0 {
				return nil, fmt.Errorf("a quote does not end: %s", text)
			}
			inWord = true
			word.WriteString(text[i+1 : i+1+length])
			i += 1 + length
		case strings.HasPrefix(text[i:], "$("), c == '(' && list.MatchString(word.String()):
			from := i + strings.IndexByte(text[i:], '(')
			end := closing(text[from:])
			if end < 0 {
				return nil, fmt.Errorf("%s does not end: %s", text[i:from+1], text)
			}
			inWord = true
			word.WriteString(text[i : from+1+end])
			i = from + end
		case c == '#' && !inWord:
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case c == ' ' || c == '\t':
			endWord()
		case c == '\n' || c == '|' || c == '&' || c == ';':
			endCommand()
		case c == '<' && regexp.MustCompile(`^<[\w-]+>`).MatchString(text[i:]): // as in --cluster-name <cluster_name>
			end := strings.IndexByte(text[i:], '>')
			inWord = true
			word.WriteString(text[i : i+end+1])
			i += end
		case c == '<' || c == '>':
			endWord()
			redirected = true
			for i+1 < len(text) && strings.IndexByte("<>-& ", text[i+1]) >= 0 {
				i++
			}
		default:
			inWord = true
			word.WriteByte(c)
		}
	}
	endCommand()
	return all, nil
}

// closing is where the parenthesis ends with which a text begins.
func closing(text string) int {
	depth := 0
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}
