// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tree is a copy of a repository. It is kept between runs: what has not changed is not compiled again.
type tree struct {
	root, original string
}

// findRoot returns the folder with go.mod that a folder is in.
func findRoot(folder string) (string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	for ; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", errors.New("no go.mod here or in a folder above")
		}
	}
}

// copyTree brings the copy of a repository up to date: with all files that git knows or does not ignore, and no others.
func copyTree(ctx context.Context, original string) (*tree, error) {
	t := &tree{root: filepath.Join(original, "_output", "mutants", "tree"), original: original}
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = original
	names, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		err := copyFile(filepath.Join(original, name), filepath.Join(t.root, name))
		if errors.Is(err, fs.ErrNotExist) { // deleted, and not committed
			continue
		}
		if err != nil {
			return nil, err
		}
		wanted[name] = true
	}
	return t, filepath.WalkDir(t.root, func(path string, entry fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(t.root, path)
		if err = errors.Join(err, relErr); err != nil {
			return err
		}
		if entry.IsDir() {
			if name == "_output" {
				return filepath.SkipDir
			}
			return nil
		}
		if !wanted[name] {
			return os.Remove(path)
		}
		return nil
	})
}

// copyFile copies a file, with its time, unless that is the same.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if have, err := os.Stat(to); err == nil && have.ModTime().Equal(info.ModTime()) {
		if old, err := os.ReadFile(to); err == nil && bytes.Equal(old, content) {
			return nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(to, content, info.Mode()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}
