// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pages reads the commands of the documentation, and what it says that they print.
package pages

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Block is a block of a page between fences, or the commands of a comment.
type Block struct {
	// Page is the path from the root of the repository, and Line that of the first fence.
	Page string
	Line int
	// Language is what the first fence says. Of a comment it is Hidden.
	Language, Text string
	// File is the name of the file that the block shows, where the line before says one.
	File string
	// NotRun says why its commands are not run. Empty, they are.
	NotRun string
	// Commands are those of blocks whose language has any.
	Commands []Command
}

// Command is one command.
type Command struct {
	Page string
	Line int
	// Text is what is typed, with lines that go on and with what is given by <<EOF.
	Text string
	// Output is what the page says that it prints.
	Output string
	// NoOutput is true where a page never shows any: then what is printed does not matter, but the command has to succeed.
	NoOutput bool
}

// Where is the page and the line, as compilers say it.
func (c Command) Where() string { return fmt.Sprintf("%s:%d", c.Page, c.Line) }

// Where is the page and the line, as compilers say it.
func (b Block) Where() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

// Hidden is the language of the commands of a comment: what a page needs, or leaves, that readers need not see.
const Hidden = "hidden"

var (
	fence   = regexp.MustCompile("^( *)```(.*)$")
	exempt  = regexp.MustCompile(`^ *<!-- not run: *(.*?) *-->$`)
	hidden  = regexp.MustCompile(`^ *<!-- run:$`)
	isFile  = regexp.MustCompile("^ *`([^` ]+)`:$")
	heredoc = regexp.MustCompile(`<<-?['"]?(\w+)['"]?(?:$|[^<\w])`)
)

// Files are the pages of the documentation, as paths from the root, but for what is generated.
func Files(root string) ([]string, error) {
	files := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".md") {
			return err
		}
		file, err := filepath.Rel(root, path)
		if file = filepath.ToSlash(file); err == nil && !strings.HasPrefix(file, "docs/reference/") {
			files = append(files, file)
		}
		return err
	})
	return files, err
}

// Read reads the blocks of a page.
func Read(root, page string) ([]Block, error) {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		return nil, err
	}
	return Parse(page, string(data))
}

// Parse is Read of a text.
func Parse(page, text string) (blocks []Block, err error) {
	lines := strings.Split(text, "\n")
	file, reason, reasonLine := "", "", 0
	for i := 0; i < len(lines); i++ {
		b := Block{Page: page, Line: i + 1}
		indent, end := "", "-->"
		switch {
		case strings.TrimSpace(lines[i]) == "":
			continue
		case exempt.MatchString(lines[i]):
			reason, reasonLine = exempt.FindStringSubmatch(lines[i])[1], i+1
			if reason == "" {
				return nil, fmt.Errorf("%s:%d: why the next block is not run is not said", page, i+1)
			}
			continue
		case isFile.MatchString(lines[i]):
			file = isFile.FindStringSubmatch(lines[i])[1]
			continue
		case hidden.MatchString(lines[i]):
			b.Language = Hidden
		case fence.MatchString(lines[i]):
			found := fence.FindStringSubmatch(lines[i])
			indent, b.Language, end = found[1], strings.TrimSpace(found[2]), "```"
			b.File, b.NotRun = file, reason
			reason = ""
		default:
			if text := strings.TrimSpace(lines[i]); strings.HasPrefix(text, "<!-- not run") || strings.HasPrefix(text, "<!-- run") {
				return nil, fmt.Errorf("%s:%d: the comment is not understood: see docs/contributing.md", page, i+1)
			}
			if reason != "" {
				return nil, fmt.Errorf("%s:%d: the comment says what is not run, and no block follows", page, reasonLine)
			}
			file = ""
			continue
		}
		length := slices.IndexFunc(lines[i+1:], func(l string) bool { return strings.TrimSpace(l) == end })
		if length < 0 {
			return nil, fmt.Errorf("%s:%d: the block does not end", page, i+1)
		}
		body := slices.Clone(lines[i+1 : i+1+length])
		for n := range body {
			body[n] = strings.TrimPrefix(body[n], indent)
		}
		b.Text = strings.Join(body, "\n")
		b.Commands = b.commands(body)
		blocks = append(blocks, b)
		file, i = "", i+1+length
	}
	if reason != "" {
		return nil, fmt.Errorf("%s:%d: the comment says what is not run, and no block follows", page, reasonLine)
	}
	return blocks, nil
}

// commands are those of the lines of the block.
func (b Block) commands(lines []string) (all []Command) {
	for i := 0; i < len(lines); i++ {
		typed, is := lines[i], b.Language == "sh" && strings.TrimSpace(lines[i]) != ""
		if b.Language == "console" || b.Language == Hidden {
			typed, is = strings.CutPrefix(lines[i], "$ ")
		}
		switch {
		case is:
			c := Command{Page: b.Page, Line: b.Line + 1 + i, NoOutput: b.Language != "console"}
			text := []string{typed}
			for strings.HasSuffix(lines[i], `\`) && i+1 < len(lines) {
				i++
				text = append(text, lines[i])
			}
			for _, ends := range heredoc.FindAllStringSubmatch(strings.Join(text, "\n"), -1) {
				for i+1 < len(lines) {
					i++
					if text = append(text, lines[i]); lines[i] == ends[1] {
						break
					}
				}
			}
			c.Text = strings.Join(text, "\n")
			all = append(all, c)
		case len(all) > 0 && b.Language == "console":
			all[len(all)-1].Output += lines[i] + "\n"
		}
	}
	return all
}
