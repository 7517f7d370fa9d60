// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pages reads the commands of the documentation, and what it says that they print.
package pages

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Block is a block of a page between fences, or the commands of a comment.
type Block struct {
	// Page is the path from the root of the repository, and Line the line of the first fence.
	Page string
	Line int
	// Language is the language of the first fence. For a comment it is Hidden.
	Language, Text string
	// File is the name of the file that the block shows, where the line before says one.
	File string
	// NotRun is the reason why the commands are not run. They are run if it is empty.
	NotRun string
	// Swaps are replacements for texts of the page.
	Swaps []Swap
	// Elsewhere is true where its command is typed in another terminal, and goes on while the commands of the next blocks are typed.
	Elsewhere bool
	// Exits are the exit codes of commands that do not succeed.
	Exits []Exit
	// RunBy is the folder and the name of the test that types its commands, where it is not test/e2e/docs.
	RunBy string
	// Commands are those of blocks whose language has any.
	Commands []Command
}

// Swap is a text of a page that is another one in each run, such as a token, and the word that a shell makes that one of.
type Swap struct{ Text, Word string }

// Exit is the exit code of a command. Command is the first line of the command, or its beginning and "…".
type Exit struct {
	Code    int
	Command string
}

// Command is one command.
type Command struct {
	Page string
	Line int
	// Text is the command, including continuation lines and here-documents.
	Text string
	// Output is the expected output according to the page.
	Output string
	// NoOutput is true where a page never shows any: then what is printed does not matter.
	NoOutput bool
	// Exit is the exit code according to the comment before the block, or 0 if the comment does not name the command.
	Exit int
}

// Where is the page and the line, as compilers say it.
func (c Command) Where() string { return fmt.Sprintf("%s:%d", c.Page, c.Line) }

// Where is the page and the line, as compilers say it.
func (b Block) Where() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

// Hidden is the language of the commands of a comment: what a page needs, or leaves, that readers need not see.
const Hidden = "hidden"

var (
	fence   = regexp.MustCompile("^( *)```(.*)$")
	comment = regexp.MustCompile(`^<!-- (?:not run|run|typed with|exits with|in another terminal)\b`)
	exempt  = regexp.MustCompile(`^<!-- not run: (.+?) *-->$`)
	runBy   = regexp.MustCompile(`^<!-- run by: (\S+ Test\w+) -->$`)
	hidden  = regexp.MustCompile(`^ *<!-- run:$`)
	swaps   = regexp.MustCompile(`^<!-- typed with:$`)
	swap    = regexp.MustCompile(`^(\S.*?) = (\S.*)$`)
	exits   = regexp.MustCompile(`^<!-- exits with ([1-9]\d*): (\S.*?) *-->$`)
	failure = regexp.MustCompile(`(?m)^(?:[Ee]rror: |Error from server(?: \(\w+\))?: |The \w+ "[^"]*" is invalid: )`)
	other   = regexp.MustCompile(`^<!-- in another terminal -->$`)
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
		file = filepath.ToSlash(file)
		if err == nil && !strings.HasPrefix(file, "docs/reference/") {
			files = append(files, file)
		}
		return err
	})
	return files, err
}

// All reads the blocks of all pages. With an error it returns those that can be read.
func All(root string) (all []Block, err error) {
	files, err := Files(root)
	errs := []error{err}
	for _, file := range files {
		blocks, err := Read(root, file)
		all, errs = append(all, blocks...), append(errs, err)
	}
	return all, errors.Join(errs...)
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
	file, said, saidLine := "", Block{}, 0
	for i := 0; i < len(lines); i++ {
		b := Block{Page: page, Line: i + 1}
		indent, end := "", "-->"
		switch line := strings.TrimSpace(lines[i]); {
		case line == "":
			continue
		case isFile.MatchString(lines[i]):
			file = isFile.FindStringSubmatch(lines[i])[1]
			continue
		case hidden.MatchString(lines[i]):
			b.Language = Hidden
			if said.RunBy != "" {
				b.RunBy = said.RunBy
				said, saidLine = Block{}, 0
			}
		case comment.MatchString(line):
			length, err := said.says(lines[i:])
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", page, i+1, err)
			}
			saidLine = i + 1
			i += length - 1
			continue
		case fence.MatchString(lines[i]):
			found := fence.FindStringSubmatch(lines[i])
			indent, b.Language, end = found[1], strings.TrimSpace(found[2]), "```"
			b.File, b.NotRun, b.RunBy, b.Swaps, b.Exits, b.Elsewhere = file, said.NotRun, said.RunBy, said.Swaps, said.Exits, said.Elsewhere
			said, saidLine = Block{}, 0
		default:
			if saidLine > 0 {
				return nil, fmt.Errorf("%s:%d: the comment is about a block, and no block follows", page, saidLine)
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
		if err := b.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", b.Where(), err)
		}
		blocks = append(blocks, b)
		file, i = "", i+1+length
	}
	if saidLine > 0 {
		return nil, fmt.Errorf("%s:%d: the comment is about a block, and no block follows", page, saidLine)
	}
	return blocks, nil
}

// says reads a comment about the block that follows, and returns how many lines it has.
func (b *Block) says(lines []string) (length int, err error) {
	switch first := strings.TrimSpace(lines[0]); {
	case exempt.MatchString(first):
		b.NotRun = exempt.FindStringSubmatch(first)[1]
		return 1, nil
	case runBy.MatchString(first):
		b.RunBy = runBy.FindStringSubmatch(first)[1]
		return 1, nil
	case exits.MatchString(first):
		found := exits.FindStringSubmatch(first)
		code, err := strconv.Atoi(found[1])
		if err != nil {
			return 0, err
		}
		b.Exits = append(b.Exits, Exit{Code: code, Command: found[2]})
		return 1, nil
	case other.MatchString(first):
		b.Elsewhere = true
		return 1, nil
	case swaps.MatchString(first):
		for i, line := range lines[1:] {
			found := swap.FindStringSubmatch(strings.TrimSpace(line))
			switch {
			case strings.TrimSpace(line) == "-->" && len(b.Swaps) > 0:
				return i + 2, nil
			case found == nil:
				return 0, fmt.Errorf("the comment has the line %q, want TEXT = WORD", line)
			case found[1] == "…":
				return 0, errors.New("the comment is about …, which stands for anything in what is printed")
			}
			b.Swaps = append(b.Swaps, Swap{Text: found[1], Word: found[2]})
		}
		return 0, errors.New("the comment does not end")
	}
	return 0, errors.New("the comment is not understood: see docs/contributing.md")
}

// check says what is wrong with what the comments before the block say.
func (b Block) check() error {
	if b.NotRun != "" && (b.Elsewhere || len(b.Swaps) > 0 || len(b.Exits) > 0) {
		return errors.New("how its commands are typed is said, and that they are not")
	}
	if b.Elsewhere && (len(b.Commands) != 1 || strings.TrimSpace(b.Commands[0].Output) == "") {
		return errors.New("in another terminal one command is typed, and the block says what it prints")
	}
	for _, e := range b.Exits {
		if !slices.ContainsFunc(b.Commands, e.matches) {
			return fmt.Errorf("the comment before it has the exit code of %s, which is not one of its commands", e.Command)
		}
	}
	for _, s := range b.Swaps {
		if !strings.Contains(b.Text, s.Text) {
			return fmt.Errorf("the comment before it is about %s, which it does not have", s.Text)
		}
	}
	return nil
}

// matches reports whether e is about a command.
func (e Exit) matches(c Command) bool {
	line, _, _ := strings.Cut(c.Text, "\n")
	if begin, cut := strings.CutSuffix(e.Command, "…"); cut {
		return strings.HasPrefix(line, begin)
	}
	return line == e.Command
}

// CheckExit returns how the exit code of a command differs from the page, or "". A command must exit with 0, unless the comment before the block has
// another code, or its output in the page is an error.
func (c Command) CheckExit(code int) string {
	switch fails := failure.MatchString(c.Output); {
	case c.Exit == 0 && fails && code == 0:
		return "it has exited with 0, and the page shows an error"
	case c.Exit == 0 && fails, code == c.Exit:
		return ""
	}
	return fmt.Sprintf("it has exited with %d, want %d", code, c.Exit)
}

// Swapped is the command with other texts in their places: those of the Swaps of its block, in their order.
func (c Command) Swapped(texts []string) Command {
	swap := strings.NewReplacer(texts...)
	c.Text, c.Output = swap.Replace(c.Text), swap.Replace(c.Output)
	return c
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
					text = append(text, lines[i])
					if lines[i] == ends[1] {
						break
					}
				}
			}
			c.Text = strings.Join(text, "\n")
			if i := slices.IndexFunc(b.Exits, func(e Exit) bool { return e.matches(c) }); i >= 0 {
				c.Exit = b.Exits[i].Code
			}
			all = append(all, c)
		case len(all) > 0 && b.Language == "console":
			all[len(all)-1].Output += lines[i] + "\n"
		}
	}
	return all
}
