// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

const from = "https://source.example/blob/v1.2.3"

// rendered is the site of the repository, or of a folder, by the paths of its files.
func rendered(t *testing.T, root string) (map[string][]byte, error) {
	t.Helper()
	output := filepath.Join(t.TempDir(), "site")
	s := site{root: root, version: "v1.2.3", source: from}
	if err := s.write(output); err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	return files, filepath.WalkDir(output, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(output, path)
		files[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	})
}

// each calls a function with each element of a page.
func each(t *testing.T, text []byte, f func(n *html.Node, attributes map[string]string)) {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			attributes := map[string]string{}
			for _, a := range n.Attr {
				attributes[a.Key] = a.Val
			}
			f(n, attributes)
		}
	}
}

// TestSite_HasEveryPage: each page of the documentation, with its title, and a second rendering has the same bytes.
func TestSite_HasEveryPage(t *testing.T) {
	files, err := rendered(t, "../../..")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, folder := range []string{"design", "runbooks", "reference", "reference/api", "reference/cli"} {
		more, _ := filepath.Glob("../../../docs/" + folder + "/*.md")
		pages = append(pages, more...)
	}
	for _, source := range append(pages, "../../../README.md", "../../../SECURITY.md") {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(filepath.ToSlash(source), "../../../")
		name = strings.ReplaceAll(strings.TrimSuffix(name, ".md")+".html", "README.html", "index.html")
		title := regexp.MustCompile(`(?m)^# .*$`).FindString(string(text))
		got := ""
		each(t, files[name], func(n *html.Node, _ map[string]string) {
			if n.Data == "h1" && got == "" {
				for d := range n.Descendants() {
					if d.Type == html.TextNode {
						got += d.Data
					}
				}
			}
		})
		if want := strings.NewReplacer("# ", "", "`", "").Replace(title); got != want {
			t.Errorf("%s has the title %q, want %q", name, got, want)
		}
	}
	again, err := rendered(t, "../../..")
	if err != nil || !maps.EqualFunc(files, again, bytes.Equal) {
		t.Errorf("the site is another one the second time, %v", err)
	}
}

// TestSite_LinksResolve follows all links and anchors in the site, and looks for what a page would load or run.
func TestSite_LinksResolve(t *testing.T) {
	files, err := rendered(t, "../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems(t, files) {
		t.Error(problem)
	}
}

// problems are links that lead nowhere, and what is loaded from elsewhere or run.
func problems(t *testing.T, files map[string][]byte) (all []string) {
	t.Helper()
	ids := map[string]bool{}
	for name, text := range files {
		each(t, text, func(_ *html.Node, a map[string]string) {
			if a["id"] != "" {
				ids[name+"#"+a["id"]] = true
			}
		})
	}
	for name, text := range files {
		if strings.HasSuffix(name, ".css") && regexp.MustCompile(`url\(|@import`).Match(text) {
			all = append(all, name+" loads something")
		}
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		each(t, text, func(n *html.Node, a map[string]string) {
			for key, to := range a {
				switch {
				case strings.HasPrefix(key, "on") || key == "style" || n.Data == "script" || n.Data == "style" || n.Data == "iframe":
					all = append(all, name+" has <"+n.Data+" "+key+">, which its policy forbids")
				case key != "href" && key != "src":
				case strings.Contains(to, ":"):
					if n.Data != "a" {
						all = append(all, name+" loads "+to)
					}
				default:
					file, anchor, _ := strings.Cut(to, "#")
					file = path.Join(path.Dir(name), file)
					if strings.HasPrefix(to, "#") {
						file = name
					}
					if _, there := files[file]; !there || anchor != "" && !ids[file+"#"+anchor] {
						all = append(all, name+" leads to "+to+", which is not there")
					}
				}
			}
		})
	}
	slices.Sort(all)
	return all
}

// TestSite_Errors tries what ends the rendering, on small sites, and that the test of links sees what is wrong with one.
func TestSite_Errors(t *testing.T) {
	const index = "# Weather\n\n## Read on\n\n- [Rain](docs/rain.md): from above; [sun](docs/sun/README.md)\n"
	good := map[string]string{"README.md": index, "SECURITY.md": "# Security\n", "docs/rain.md": "# Rain\n\nIt is [safe](../SECURITY.md), see [the gauge](../gauge.go).\n",
		"docs/sun/README.md": "# Sun\n\n[Noon](noon.md#at-12-oclock), [rain](../rain.md).\n", "docs/sun/noon.md": "# Noon\n\n## At 12 o'clock\n", "gauge.go": "package x\n"}
	for name, test := range map[string]struct{ path, text, refused, seen string }{
		"all is right":        {"docs/rain.md", good["docs/rain.md"], "", ""},
		"a link to nowhere":   {"docs/sun/noon.md", "# Noon\n\n[x](midnight.md)\n", "docs/sun/noon.md links to midnight.md, which is not there", ""},
		"a page of no link":   {"docs/snow.md", "# Snow\n", "no page leads to docs/snow.md", ""},
		"without a title":     {"docs/rain.md", "Rain. [s](../SECURITY.md)\n", "docs/rain.md has no title", ""},
		"an image elsewhere":  {"docs/rain.md", "# Rain\n\n![x](https://x.example/x.png) [s](../SECURITY.md)\n", "loads nothing from elsewhere", ""},
		"without a list":      {"README.md", "# Weather\n\n- [Rain](docs/rain.md), [sun](docs/sun/README.md)\n", "no list of pages below ## Read on", ""},
		"an anchor that errs": {"docs/rain.md", "# Rain\n\n[x](sun/noon.md#at-13) [s](../SECURITY.md)\n", "", "docs/rain.html leads to sun/noon.html#at-13, which is not there"},
		"a script":            {"docs/rain.md", "# Rain\n\n<script src=x.js></script>\n\n[s](../SECURITY.md)\n", "", ""}, // it is left out
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			tree := maps.Clone(good)
			tree[test.path] = test.text
			for path, text := range tree {
				if err := put(filepath.Join(root, path), []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			files, err := rendered(t, root)
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("got the error %v, want one with %q", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if found := strings.Join(problems(t, files), "\n"); found != test.seen {
				t.Errorf("found %q, want %q", found, test.seen)
			}
			if noon := string(files["docs/sun/noon.html"]); !strings.Contains(noon, `<a href="../../docs/sun/index.html">Sun</a></nav>`) {
				t.Errorf("noon is not below the sun: %s", noon)
			}
		})
	}
}
