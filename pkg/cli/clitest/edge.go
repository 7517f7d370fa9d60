// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Packed returns a tar.gz with one Deployment. The Deployment has a namespace if that is not empty.
func Packed(t *testing.T, name, namespace string) []byte {
	t.Helper()
	manifest := fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s, namespace: %q}\n", name, namespace)
	var data bytes.Buffer
	zipped := gzip.NewWriter(&data)
	entries := tar.NewWriter(zipped)
	if err := entries.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name + ".yaml", Mode: 0o644, Size: int64(len(manifest))}); err != nil {
		t.Fatal(err)
	}
	if _, err := entries.Write([]byte(manifest)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(entries.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

// InFolder writes files, each a list of documents, and returns their folder.
func InFolder(t *testing.T, files map[string][]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, documents := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(strings.Join(documents, "---\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
