// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package binaries gives tests the programs they start.
package binaries

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Kubernetes links Kubernetes' programs into dir, which it creates outside the module, and returns dir. A test that looked for them in
// TEST_BIN_DIR would depend on our own programs there, too: Go does not take a test's result from its cache once a directory or a file of
// the module that the test has looked at has changed, and ours are linked again with each commit. Kubernetes skips the test if TEST_BIN_DIR
// is not set.
func Kubernetes(t testing.TB, dir string) string {
	t.Helper()
	from := os.Getenv("TEST_BIN_DIR")
	if from == "" {
		t.Skip("TEST_BIN_DIR is not set: it is the directory of etcd, kube-apiserver, kube-controller-manager and kubectl")
	}
	from, err := filepath.Abs(from)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"} {
		file := filepath.Join(from, name)
		_, missing := os.Stat(file) // Go notes that the result depends on this file
		err = errors.Join(err, missing)
		if linked := os.Symlink(file, filepath.Join(dir, name)); !errors.Is(linked, os.ErrExist) {
			err = errors.Join(err, linked)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
