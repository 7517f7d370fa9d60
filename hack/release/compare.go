// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/tools/go/packages"
)

// promised are the folders of the Go packages that docs/versions.md makes a promise for, with all below them.
var promised = []string{"pkg/apis", "pkg/generated", "pkg/clusterprovider"}

// compare holds the Go packages that others build with to those of the last release. What they cannot build with any more has to be in the notes.
func compare(root string) error {
	tag, err := lastTag(root)
	if err != nil || tag == "" {
		return err
	}
	before, err := os.MkdirTemp("", "clusterhub-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(before)
	archive, err := git(root, "archive", "--format=tar", tag)
	if err != nil {
		return err
	}
	unpack := exec.Command("tar", "-x", "-C", before)
	unpack.Stdin = bytes.NewReader(archive)
	if out, err := unpack.CombinedOutput(); err != nil {
		return fmt.Errorf("unpacking %s: %w: %s", tag, err, out)
	}
	broken, more, err := broken(before, root)
	if err != nil {
		return err
	}
	all, err := changes(filepath.Join(root, "docs", "changes"))
	if err != nil {
		return err
	}
	var problems []error
	example := ""
	for _, b := range broken {
		if !b.inNotes(all) {
			problems = append(problems, fmt.Errorf("%s: %s", b.folder, b.message))
			example = cmp.Or(example, b.name())
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("programs that build with the Go packages of %s would not build any more:\n%w\n  → keep these, or name each in a file of "+
			"docs/changes with the kind removal, as in `%s`", tag, errors.Join(problems...), example)
	}
	fmt.Printf("  compared with %s: %d changes add something, and %d that others cannot build with are in the notes\n", tag, more, len(broken))
	return nil
}

// lastTag is the release that the commit comes after, or is. Without one there is nothing to compare with, and it says why.
func lastTag(root string) (string, error) {
	tags, err := git(root, "tag", "--merged", "HEAD", "--sort=-version:refname")
	if err != nil {
		return "", err
	}
	release := regexp.MustCompile(`^v\d+\.\d+\.\d+$`)
	for _, tag := range strings.Fields(string(tags)) {
		if release.MatchString(tag) {
			return tag, nil
		}
	}
	shallow, err := git(root, "rev-parse", "--is-shallow-repository")
	if err == nil && strings.TrimSpace(string(shallow)) == "true" {
		fmt.Println("  nothing is compared: this clone is shallow, and has no tag of a release. git fetch --unshallow --tags gets them")
		return "", nil
	}
	fmt.Println("  nothing is compared: there is no tag of a release, such as v1.2.3, in what the commit comes after. git fetch --tags gets them where a clone has none")
	return "", err
}

func git(root string, args ...string) ([]byte, error) {
	command := exec.Command("git", append([]string{"-C", root}, args...)...)
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, said.Bytes())
	}
	return out, nil
}

// incompatible is a change that others cannot build with: of a symbol, such as Type.Method, or of the whole package.
type incompatible struct{ folder, symbol, message string }

// name is how notes name it.
func (i incompatible) name() string { return strings.TrimSuffix(i.folder+"."+i.symbol, ".") }

// broken are those between two trees, and how many others there are.
func broken(before, after string) (all []incompatible, more int, err error) {
	had, err := load(before)
	if err != nil {
		return nil, 0, err
	}
	has, err := load(after)
	if err != nil {
		return nil, 0, err
	}
	for folder, old := range had {
		now, there := has[folder]
		if !there {
			all = append(all, incompatible{folder, "", "the package is gone"})
			continue
		}
		for _, c := range apidiff.Changes(old.Types, now.Types).Changes {
			if c.Compatible {
				more++
				continue
			}
			symbol, _, _ := strings.Cut(c.Message, ":")
			all = append(all, incompatible{folder, strings.NewReplacer("(*", "", "(", "", ")", "").Replace(symbol), c.Message})
		}
	}
	slices.SortFunc(all, func(a, b incompatible) int {
		return cmp.Or(strings.Compare(a.name(), b.name()), strings.Compare(a.message, b.message))
	})
	return all, more, nil
}

// load are the packages of a tree that others build with, by their folders.
func load(root string) (map[string]*packages.Package, error) {
	var patterns []string
	for _, folder := range promised {
		if _, err := os.Stat(filepath.Join(root, folder)); err == nil {
			patterns = append(patterns, "./"+folder+"/...")
		}
	}
	found := map[string]*packages.Package{}
	if len(patterns) == 0 {
		return found, nil
	}
	list, err := packages.Load(&packages.Config{
		Dir: root, Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedDeps | packages.NeedExportFile | packages.NeedModule,
		Env: append(os.Environ(), "GOWORK=off"),
	}, patterns...)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		for _, problem := range p.Errors {
			err = errors.Join(err, fmt.Errorf("%s in %s: %w", p.PkgPath, root, problem))
		}
		folder := strings.TrimPrefix(p.PkgPath, p.Module.Path+"/")
		if !slices.Contains(strings.Split(folder, "/"), "internal") {
			found[folder] = p
		}
	}
	return found, err
}

// inNotes reports whether a removal in the notes names it, or the type that it is of.
func (i incompatible) inNotes(all []change) bool {
	of, _, _ := strings.Cut(i.symbol, ".")
	whole := incompatible{folder: i.folder, symbol: of}
	return slices.ContainsFunc(all, func(c change) bool {
		if c.Kind != "removal" {
			return false
		}
		said := c.text + " " + c.Action
		return strings.Contains(said, "`"+i.name()+"`") || strings.Contains(said, "`"+whole.name()+"`")
	})
}
