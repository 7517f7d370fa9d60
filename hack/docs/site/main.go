// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command site renders the documentation as a site of plain files: site ROOT OUTPUT --version VERSION --source URL. A page has the path of its Markdown,
// so the same relative links work in both. It needs no server of its own, runs no script, and loads nothing from elsewhere.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	flags := flag.NewFlagSet("site", flag.ExitOnError)
	s := site{}
	flags.StringVar(&s.version, "version", "", "What the site is about: the version that its pages name.")
	flags.StringVar(&s.source, "source", "", "Where the repository can be read: what links to files that are no pages begin with.")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: site --version VERSION --source URL ROOT OUTPUT")
		flags.PrintDefaults()
	}
	_ = flags.Parse(os.Args[1:])
	if flags.NArg() != 2 || s.version == "" || s.source == "" {
		flags.Usage()
		os.Exit(2)
	}
	s.root = flags.Arg(0)
	if err := s.write(flags.Arg(1)); err != nil {
		fmt.Fprintln(os.Stderr, "hack/docs/site:", err)
		os.Exit(1)
	}
	fmt.Printf("  %d pages\n", len(s.pages))
}

// site is what is rendered.
type site struct {
	root, version, source string
	// pages are by the paths of their Markdown, below the root.
	pages map[string]*page
	// order is that of the list in README.md, and what begins each entry.
	order []entry
}

// sources are the paths of all pages and images. Notes of changes that are not released yet are no pages.
func (s *site) sources() (pages, images []string, err error) {
	pages = []string{home, "SECURITY.md"}
	err = filepath.WalkDir(filepath.Join(s.root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path, err = filepath.Rel(s.root, path)
		switch path = filepath.ToSlash(path); {
		case strings.HasPrefix(path, "docs/changes/") && path != "docs/changes/README.md":
		case strings.HasSuffix(path, ".md"):
			pages = append(pages, path)
		case strings.HasPrefix(path, "docs/images/"):
			images = append(images, path)
		}
		return err
	})
	return pages, images, err
}

// write makes the whole site in a folder that is not there, or that is a site already.
func (s *site) write(output string) error {
	if err := emptied(output); err != nil {
		return err
	}
	sources, images, err := s.sources()
	if err != nil {
		return err
	}
	if err := s.read(sources); err != nil {
		return err
	}
	for path, p := range s.pages {
		text, err := s.html(p)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := put(filepath.Join(output, filepath.FromSlash(address(path))), text); err != nil {
			return err
		}
	}
	for _, path := range images {
		image, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(path)))
		if err != nil {
			return err
		}
		if err := put(filepath.Join(output, filepath.FromSlash(path)), image); err != nil {
			return err
		}
	}
	return put(filepath.Join(output, styles), style)
}

// emptied removes an earlier site, and nothing else.
func emptied(output string) error {
	_, err := os.Stat(filepath.Join(output, styles))
	if err == nil {
		return os.RemoveAll(output)
	}
	if entries, _ := os.ReadDir(output); len(entries) > 0 {
		return fmt.Errorf("%s has something in it that is no site: remove it, or name another folder", output)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func put(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
