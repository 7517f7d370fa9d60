// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"
)

const faultsFile = "test/mutants/faults.yaml"

// fault is a change of the tree that tests have to catch.
type fault struct {
	Name string `json:"name"`
	// Why is the effect of the fault on a user.
	Why   string `json:"why"`
	Edits []edit `json:"edits"`
	// Packages are folders of further packages whose tests may catch it.
	Packages []string `json:"packages,omitempty"`
	// E2E is the folder below test/e2e that catches it at the latest.
	E2E string `json:"e2e,omitempty"`
}

// edit replaces a text of a file that has to be there exactly once.
type edit struct {
	File string `json:"file"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// load reads faults.
func load(file string) ([]fault, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all struct {
		Faults []fault `json:"faults"`
	}
	if err := yaml.UnmarshalStrict(data, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all.Faults, nil
}

// original is a file before an edit. Its modification time is restored, too: go test treats a file with a different time as changed.
type original struct {
	path    string
	content []byte
	mode    os.FileMode
	time    time.Time
}

// changed returns the content of each file with the edits, and the current files.
func (f *fault) changed(root string) (contents map[string][]byte, originals []original, err error) {
	contents = map[string][]byte{}
	for _, e := range f.Edits {
		path := filepath.Join(root, e.File)
		if contents[path] == nil {
			o := original{path: path}
			o.content, err = os.ReadFile(path)
			if err != nil {
				return nil, nil, fmt.Errorf("fault %s: %w", f.Name, err)
			}
			info, err := os.Stat(path)
			if err != nil {
				return nil, nil, fmt.Errorf("fault %s: %w", f.Name, err)
			}
			o.mode, o.time = info.Mode(), info.ModTime()
			contents[path] = o.content
			originals = append(originals, o)
		}
		if n := bytes.Count(contents[path], []byte(e.Old)); e.Old == "" || n != 1 {
			return nil, nil, fmt.Errorf("fault %s: %s has the old text %d times, want once: %q", f.Name, e.File, n, e.Old)
		}
		if e.Old == e.New {
			return nil, nil, fmt.Errorf("fault %s: the edit of %s changes nothing", f.Name, e.File)
		}
		contents[path] = bytes.Replace(contents[path], []byte(e.Old), []byte(e.New), 1)
	}
	return contents, originals, nil
}

// plant applies a fault to a tree. The function that it returns reverts it.
func (f *fault) plant(root string) (revert func() error, err error) {
	contents, originals, err := f.changed(root)
	if err != nil {
		return nil, err
	}
	revert = func() error {
		var errs []error
		for _, o := range originals {
			errs = append(errs, os.WriteFile(o.path, o.content, o.mode), os.Chtimes(o.path, o.time, o.time))
		}
		return errors.Join(errs...)
	}
	for _, o := range originals {
		if err := os.WriteFile(o.path, contents[o.path], o.mode); err != nil {
			return nil, errors.Join(err, revert())
		}
	}
	return revert, nil
}
