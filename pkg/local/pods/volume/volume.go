// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package volume writes the files of pods: the content of a Secret or ConfigMap in a volume, with atomic updates of all files of one.
package volume

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// File is a file of a volume, by its path there.
type File struct {
	Data string
	Mode os.FileMode
	// Own reports whether it belongs to the user of the pod, and not to root.
	Own bool
}

// Current is the link that makes all files of a volume change at once. Programs look for it by this name.
const Current = "..data"

// Write replaces the files of a volume at once: they are links into a folder, which is replaced as a whole. own sets the owner and the mode of a
// file. The previous folder stays until the next call: a program that has just followed the link into it finds its file.
func Write(dir string, files map[string]File, own func(string, File) error) error {
	if err := publicFolder(dir); err != nil {
		return err
	}
	former, _ := os.Readlink(filepath.Join(dir, Current)) // it does not exist at first
	next := ".." + time.Now().UTC().Format("2006_01_02_15_04_05.000000000")
	for name, file := range files {
		at := filepath.Join(dir, next, name)
		if err := publicFolder(filepath.Dir(at)); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(file.Data), 0o600); err != nil {
			return err
		}
		if err := own(at, file); err != nil {
			return err
		}
	}
	if err := publicFolder(filepath.Join(dir, next)); err != nil {
		return err
	}
	if err := replaceLink(dir, Current, next); err != nil {
		return err
	}
	if err := linkFiles(dir, files); err != nil {
		return err
	}
	return removeFolders(dir, next, former)
}

// removeFolders deletes all previous folders of files except some.
func removeFolders(dir string, but ...string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.IsDir() && strings.HasPrefix(entry.Name(), "..") && !slices.Contains(but, entry.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}

// publicFolder creates a folder that all users may read.
func publicFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

// linkFiles creates a link for the first part of each path, and deletes all others.
func linkFiles(dir string, files map[string]File) error {
	wanted := map[string]bool{}
	for name := range files {
		first, _, _ := strings.Cut(name, "/")
		wanted[first] = true
	}
	for name := range wanted {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			continue
		}
		if err := replaceLink(dir, name, filepath.Join(Current, name)); err != nil {
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

// AddKeys adds the files of the keys of a Secret or ConfigMap: all of them, or the items. err is the error of reading the object.
func AddKeys(files map[string]File, data map[string][]byte, items []corev1.KeyToPath, optional *bool, mode *int32, err error) error {
	isOptional := optional != nil && *optional
	if err != nil && (!isOptional || !apierrors.IsNotFound(err)) {
		return err
	}
	if len(items) == 0 {
		for key := range data {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		value, there := data[item.Key]
		if !there && !isOptional {
			return fmt.Errorf("key %q not found", item.Key)
		}
		if there {
			files[path.Clean(item.Path)] = File{Data: string(value), Mode: ModeOf(item.Mode, mode)}
		}
	}
	return nil
}

// ModeOf returns the first mode that is set, 0644 by default.
func ModeOf(modes ...*int32) os.FileMode {
	for _, mode := range modes {
		if mode != nil {
			return os.FileMode(*mode).Perm()
		}
	}
	return 0o644
}
