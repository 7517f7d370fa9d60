// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"html/template"
	"path"
	"strings"
)

// styles is the only file besides pages and images.
const styles = "site.css"

var (
	//go:embed site.css
	style []byte
	//go:embed page.html
	layout string
	outer  = template.Must(template.New("page").Parse(layout))
)

// Link is a link of the frame of a page.
type Link struct {
	Title, To     string
	Current, Deep bool
	// Below are the pages of a section that is read.
	Below []Link
}

// frame is what the layout shows.
type frame struct {
	Title, Version string
	Home, Styles   string
	Source         string
	Head, Content  template.HTML
	List, Trail    []Link
	Sections       []section
	Before, After  *Link
}

// html is a page in its frame.
func (s *site) html(p *page) ([]byte, error) {
	var content bytes.Buffer
	if err := markdown().Renderer().Render(&content, p.source, p.root); err != nil {
		return nil, err
	}
	text := strings.NewReplacer("<table>", `<div class="wide" role="region" aria-label="Table" tabindex="0"><table>`, "</table>", "</table></div>").Replace(content.String())
	head, text, _ := strings.Cut(text, "</h1>")
	f := frame{
		Title: p.title, Version: s.version, Home: s.way(p, home), Styles: relative(p.path, styles), Source: s.source + "/" + p.path,
		//nolint:gosec // it is rendered from our own Markdown, without its HTML
		Head: template.HTML(head + "</h1>"), Content: template.HTML(text),
	}
	if len(p.sections) > 2 {
		f.Sections = p.sections
	}
	within := map[*page]bool{}
	for at := p; at != nil; at = at.parent {
		within[at] = true
		if at != p {
			f.Trail = append([]Link{{Title: at.title, To: s.way(p, at.path)}}, f.Trail...)
		}
	}
	for i, e := range s.order {
		l := Link{Title: e.page.title, To: s.way(p, e.page.path), Current: e.page == p, Deep: e.deep}
		if within[e.page] {
			l.Below = s.below(p, e.page)
		}
		f.List = append(f.List, l)
		if e.page != p {
			continue
		}
		if i > 0 {
			f.Before = &Link{Title: s.order[i-1].page.title, To: s.way(p, s.order[i-1].page.path)}
		}
		if i+1 < len(s.order) {
			f.After = &Link{Title: s.order[i+1].page.title, To: s.way(p, s.order[i+1].page.path)}
		}
	}
	if p.path == home && len(s.order) > 0 {
		f.After = &Link{Title: s.order[0].page.title, To: s.way(p, s.order[0].page.path)}
	}
	var out bytes.Buffer
	err := outer.Execute(&out, f)
	return out.Bytes(), err
}

// below are the pages that a page of the list leads to and that are in no list themselves.
func (s *site) below(from, of *page) (all []Link) {
	seen := map[string]bool{}
	for _, path := range of.links {
		if to := s.pages[path]; to.parent == of && !seen[path] {
			seen[path] = true
			all = append(all, Link{Title: to.title, To: s.way(from, path), Current: to == from})
		}
	}
	return all
}

// way is the address of a page, as it is written in another.
func (s *site) way(from *page, to string) string { return relative(from.path, address(to)) }

// relative is a path as it is written in a page.
func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(path.Clean(from), "/")) + to
}
