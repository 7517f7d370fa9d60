// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// current is the link that makes all files of a volume change at once. Programs look for it by this name.
const current = "..data"

// writeVolume replaces the files of a volume at once: they are links into a folder, which is replaced as a whole. own gives a file its
// owner and its mode.
func writeVolume(dir string, files map[string]file, own func(string, file) error) error {
	if err := publicFolder(dir); err != nil {
		return err
	}
	former, _ := os.Readlink(filepath.Join(dir, current)) // there is none at first
	next := ".." + time.Now().UTC().Format("2006_01_02_15_04_05.000000000")
	for name, file := range files {
		at := filepath.Join(dir, next, name)
		if err := publicFolder(filepath.Dir(at)); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(file.data), 0o600); err != nil {
			return err
		}
		if err := own(at, file); err != nil {
			return err
		}
	}
	if err := publicFolder(filepath.Join(dir, next)); err != nil {
		return err
	}
	if err := replaceLink(dir, current, next); err != nil {
		return err
	}
	if err := linkFiles(dir, files); err != nil {
		return err
	}
	if former == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(dir, former))
}

// publicFolder makes a folder that all users may look into.
func publicFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

// linkFiles has a link for the first part of each path, and no other.
func linkFiles(dir string, files map[string]file) error {
	wanted := map[string]bool{}
	for name := range files {
		first, _, _ := strings.Cut(name, "/")
		wanted[first] = true
	}
	for name := range wanted {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			continue
		}
		if err := replaceLink(dir, name, filepath.Join(current, name)); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "..") && !wanted[entry.Name()] {
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func replaceLink(dir, name, target string) error {
	temporary := filepath.Join(dir, "..tmp")
	if err := os.Symlink(target, temporary); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, name))
}
