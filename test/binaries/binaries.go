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
// the directory that also has our own would depend on all of them: Go does not take a test's result from its cache once a directory or a
// file of the module that the test has looked at has changed, and ours are linked again with each commit. The programs are those of
// TEST_BIN_DIR, or of the checkout. If they have not been built, Kubernetes skips the test.
func Kubernetes(t testing.TB, dir string) string {
	t.Helper()
	from := os.Getenv("TEST_BIN_DIR")
	if from == "" {
		from = built()
	}
	from, err := filepath.Abs(from)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"} {
		file := filepath.Join(from, name)
		_, missing := os.Stat(file) // Go notes that the result depends on this file
		if os.IsNotExist(missing) && os.Getenv("TEST_BIN_DIR") == "" {
			t.Skipf("there is no %s: make kube builds it", file)
		}
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

// Moderate sets GOMAXPROCS=1 and GOGC=100 for the processes that this one starts. TestMain calls it: many servers run on few cores, most of them idle.
// With one thread for Go code they have a third fewer context switches, and with a smaller heap than GOGC=400, which hack/test.sh sets for go build,
// fewer page faults. On a virtual machine where a page fault takes 15 microseconds, that saves 20 % of their processor time.
func Moderate() {
	os.Setenv("GOMAXPROCS", "1")
	os.Setenv("GOGC", "100")
}

// built returns the directory into which make build links programs.
func built() string {
	for dir := "."; len(dir) < 100; dir = filepath.Join("..", dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "_output", "bin")
		}
	}
	return ""
}
