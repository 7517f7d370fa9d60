// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const (
	// home is the page that is read first.
	home = "README.md"
	// listed is its heading above the list of pages.
	listed = "Read on"
)

// page is a file of Markdown, read.
type page struct {
	path, title string
	source      []byte
	root        ast.Node
	// links are the pages that it leads to, in order; parent is the one that leads to it by the fewest steps from home.
	links    []string
	parent   *page
	sections []section
}

// section is a heading of the second level.
type section struct{ ID, Title string }

// entry is a page in the list in README.md. Deep ones stand behind another in the same line.
type entry struct {
	page *page
	deep bool
}

// address is where a page or another file is in the site.
func address(path string) string {
	if strings.HasSuffix(path, ".md") {
		return strings.TrimSuffix(strings.TrimSuffix(path, ".md")+".html", "README.html") + map[bool]string{true: "index.html"}[strings.HasSuffix(path, home)]
	}
	return path
}

// markdown is what GitHub reads: tables, links without brackets, and its names of headings. HTML in Markdown is left out.
func markdown() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), extension.Strikethrough, extension.Linkify, extension.TaskList),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(blocks{}, 100))),
	)
}

// read parses all pages and puts their links right. A link to what is not there is an error, and so is a page that no other leads to.
func (s *site) read(sources []string) error {
	s.pages = map[string]*page{}
	for _, path := range sources {
		source, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(path)))
		if err != nil {
			return err
		}
		context := parser.NewContext(parser.WithIDs(&names{map[string]bool{}}))
		s.pages[path] = &page{path: path, source: source, root: markdown().Parser().Parse(text.NewReader(source), parser.WithContext(context))}
	}
	var problems []error
	for _, path := range sources {
		if err := s.link(s.pages[path]); err != nil {
			problems = append(problems, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	s.list()
	if len(s.order) == 0 {
		return fmt.Errorf("%s has no list of pages below ## %s: pages are in its order", home, listed)
	}
	s.rank()
	for _, path := range sources {
		if s.pages[path].parent == nil && path != home {
			problems = append(problems, fmt.Errorf("no page leads to %s: link to it from the page where its readers come from", path))
		}
	}
	return errors.Join(problems...)
}

// rank finds the parents of pages: the README.md of their folder, if that leads to them, or else the page that is the nearest to home.
func (s *site) rank() {
	for _, p := range s.pages {
		if index := path.Join(path.Dir(p.path), home); index != home && index != p.path && s.pages[index] != nil && slices.Contains(s.pages[index].links, p.path) {
			p.parent = s.pages[index]
		}
	}
	queue, seen := []*page{s.pages[home]}, map[string]bool{home: true}
	for len(queue) > 0 {
		from := queue[0]
		queue = queue[1:]
		for _, to := range from.links {
			if p := s.pages[to]; !seen[to] {
				seen[to] = true
				if p.parent == nil {
					p.parent = from
				}
				queue = append(queue, p)
			}
		}
	}
}

// link puts the links of a page right, and finds its headings.
func (s *site) link(p *page) error {
	var problems []error
	_ = ast.Walk(p.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			id, _ := n.AttributeString("id")
			name, _ := id.([]byte)
			switch title := plain(n, p.source); {
			case n.Level == 1 && p.title == "":
				p.title = title
			case n.Level == 2:
				p.sections = append(p.sections, section{string(name), title})
			}
		case *ast.Link:
			to, err := s.target(p, string(n.Destination))
			if err != nil {
				problems = append(problems, err)
			}
			n.Destination = []byte(to)
		case *ast.Image:
			if strings.Contains(string(n.Destination), ":") {
				problems = append(problems, fmt.Errorf("%s has the image %s, and the site loads nothing from elsewhere", p.path, n.Destination))
			}
		}
		return ast.WalkContinue, nil
	})
	if p.title == "" {
		problems = append(problems, fmt.Errorf("%s has no title: begin it with # and what it is about", p.path))
	}
	return errors.Join(problems...)
}

// target is what a link of a page is in the site: another page, or a file of the repository.
func (s *site) target(from *page, link string) (string, error) {
	to, anchor, _ := strings.Cut(link, "#")
	if to == "" || strings.Contains(to, ":") {
		return link, nil
	}
	full := path.Join(path.Dir(from.path), to)
	if _, ok := s.pages[full]; ok {
		from.links = append(from.links, full)
		to = address(to)
	} else if strings.HasPrefix(full, "docs/images/") {
		return link, nil
	} else if _, err := os.Stat(filepath.Join(s.root, filepath.FromSlash(full))); err != nil {
		return link, fmt.Errorf("%s links to %s, which is not there", from.path, link)
	} else {
		to = strings.TrimSuffix(s.source, "/") + "/" + full
	}
	if anchor != "" {
		to += "#" + anchor
	}
	return to, nil
}

// list is the order of the list in README.md.
func (s *site) list() {
	h := s.pages[home]
	seen := map[string]bool{}
	under := ""
	for n := h.root.FirstChild(); n != nil; n = n.NextSibling() {
		if heading, ok := n.(*ast.Heading); ok && heading.Level == 2 {
			under = plain(heading, h.source)
		}
		if list, ok := n.(*ast.List); ok && under == listed {
			for item := list.FirstChild(); item != nil; item = item.NextSibling() {
				first := true
				_ = ast.Walk(item, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
					link, ok := n.(*ast.Link)
					if !ok || !entering {
						return ast.WalkContinue, nil
					}
					for _, to := range h.links {
						if address(to) == string(link.Destination) && !seen[to] {
							seen[to] = true
							s.order = append(s.order, entry{s.pages[to], !first})
							first = false
						}
					}
					return ast.WalkSkipChildren, nil
				})
			}
		}
	}
}

// plain is the text of a node, without its markup.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// names are those that GitHub gives to headings.
type names struct{ used map[string]bool }

var unnamed = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// Generate implements parser.IDs.
func (n *names) Generate(value []byte, _ ast.NodeKind) []byte {
	name := strings.ReplaceAll(unnamed.ReplaceAllString(strings.ToLower(strings.TrimSpace(string(value))), ""), " ", "-")
	for base, i := name, 1; n.used[name]; i++ {
		name = base + "-" + strconv.Itoa(i)
	}
	n.Put([]byte(name))
	return []byte(name)
}

// Put implements parser.IDs.
func (n *names) Put(value []byte) { n.used[string(value)] = true }

// blocks renders what a browser shows otherwise than GitHub: code in which the prompts are not copied along, and tables that scroll by themselves.
type blocks struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		console := string(n.(*ast.FencedCodeBlock).Language(source)) == "console"
		_, _ = w.WriteString(`<pre tabindex="0"><code>`)
		for i := range n.Lines().Len() {
			segment := n.Lines().At(i)
			line := segment.Value(source)
			if rest, ok := bytes.CutPrefix(line, []byte("$ ")); ok && console {
				_, _ = w.WriteString(`<span class="prompt">$ </span>`)
				line = rest
			}
			_, _ = w.WriteString(template.HTMLEscapeString(string(line)))
		}
		_, _ = w.WriteString("</code></pre>\n")
		return ast.WalkSkipChildren, nil
	})
}
