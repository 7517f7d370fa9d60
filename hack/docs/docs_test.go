// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs checks what the documentation refers to.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`")
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	code     = regexp.MustCompile("(?ms)^```.*?^```")
	span     = regexp.MustCompile("`[^`\n]*`")
	unslug   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	path     = regexp.MustCompile("`((?:artifacts|cmd|docs|hack|pkg|test)/[^`\\s]*)`")
	choice   = regexp.MustCompile(`^(.*)\{([^}]*)\}(.*)$`)
	whatever = regexp.MustCompile(`<[^>]*>`)
)

// pagesOf are the documentation's texts, without blocks of code, by their paths.
func pagesOf(t *testing.T) map[string]string {
	t.Helper()
	files := []string{root + "/README.md", root + "/CONTRIBUTING.md", root + "/SECURITY.md"}
	err := filepath.WalkDir(root+"/docs", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Clean(file)] = code.ReplaceAllStringFunc(string(data), func(block string) string { return strings.Repeat("\n", strings.Count(block, "\n")) })
	}
	return texts
}

// TestDocs_NamedTestsExist keeps the threat model true: what it says is tried, is.
func TestDocs_NamedTestsExist(t *testing.T) {
	have := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "_output" || entry.Name() == ".git") {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range testFunc.FindAllSubmatch(data, -1) {
			have[string(match[1])] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for file, text := range pagesOf(t) {
		for _, match := range testName.FindAllStringSubmatch(text, -1) {
			named++
			if !have[match[1]] {
				t.Errorf("%s names the test %s, which is not there", file, match[1])
			}
		}
	}
	if named < 50 {
		t.Errorf("the documentation names %d tests only", named)
	}
}

// TestDocs_NameEveryFuzzTarget keeps the list of parsers whole: each target is named in the row of its package.
func TestDocs_NameEveryFuzzTarget(t *testing.T) {
	data, err := os.ReadFile(root + "/docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(string(data), "\n")
	targets := 0
	for _, folder := range []string{"cmd", "hack", "pkg", "test"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			in, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			for _, match := range testFunc.FindAllStringSubmatch(string(data), -1) {
				if !strings.HasPrefix(match[1], "Fuzz") {
					continue
				}
				targets++
				if !slices.ContainsFunc(rows, func(row string) bool {
					return strings.HasPrefix(row, "| `"+filepath.ToSlash(in)+"` |") && strings.Contains(row, "`"+match[1]+"`")
				}) {
					t.Errorf("docs/security.md does not name %s in the row of %s in its section Parsers", match[1], in)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if targets < 30 {
		t.Errorf("there are %d fuzz targets only", targets)
	}
}

// TestDocs_NamedFoldersExist keeps the tables of folders true when something moves. A part such as <name> stands for any
// folder there, and one such as {a,b} for both.
func TestDocs_NamedFoldersExist(t *testing.T) {
	named := 0
	for file, text := range pagesOf(t) {
		if filepath.Base(file) == "plan.md" || filepath.Base(filepath.Dir(file)) == "changes" {
			continue // it names what is to come, or what is gone
		}
		for _, match := range path.FindAllStringSubmatch(text, -1) {
			for _, pattern := range alternatives(whatever.ReplaceAllString(strings.TrimSuffix(match[1], "…"), "*")) {
				named++
				if found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern))); err != nil || len(found) == 0 {
					t.Errorf("%s names %s, which is not there (%v)", file, match[1], err)
				}
			}
		}
	}
	if named < 100 {
		t.Errorf("the documentation names %d paths only", named)
	}
}

// alternatives are the paths that one with {a,b} in it stands for.
func alternatives(pattern string) (all []string) {
	parts := choice.FindStringSubmatch(pattern)
	if parts == nil {
		return []string{pattern}
	}
	for _, one := range strings.Split(parts[2], ",") {
		all = append(all, alternatives(parts[1]+one+parts[3])...)
	}
	return all
}

// TestDocs_LinksResolve looks for the file, and the heading in it, of each link within the repository.
func TestDocs_LinksResolve(t *testing.T) {
	texts := pagesOf(t)
	for file, text := range texts {
		for _, match := range link.FindAllStringSubmatch(span.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := file
			if target != "" {
				to = filepath.Join(filepath.Dir(file), target)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: the link %s: %v", file, match[1], err)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(texts[to]), anchor) {
				t.Errorf("%s: the link %s: there is no such heading", file, match[1])
			}
		}
	}
}

// anchors returns the anchors of a page's headings.
func anchors(text string) (all []string) {
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		slug := unslug.ReplaceAllString(strings.ToLower(match[1]), "")
		all = append(all, strings.ReplaceAll(slug, " ", "-"))
	}
	return all
}
