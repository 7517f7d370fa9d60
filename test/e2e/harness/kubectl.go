// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
)

// Overlay returns the folder of an overlay of artifacts/deploy.
func Overlay(name string) string { return filepath.Join(Root, "artifacts", "deploy", name) }

// Kubectl runs kubectl on the shared hub and returns its output.
func Kubectl(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	return kubectlOf(t, Hub(t), stdin, args...)
}

// MustKubectl runs kubectl on the shared hub and fails the test if kubectl fails.
func MustKubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	return MustKubectlOf(t, Hub(t), stdin, args...)
}

// MustKubectlOf runs kubectl on any hub and fails the test if kubectl fails.
func MustKubectlOf(t *testing.T, h *localhub.Instance, stdin string, args ...string) string {
	t.Helper()
	out, err := kubectlOf(t, h, stdin, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func kubectlOf(t *testing.T, h *localhub.Instance, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := h.Kubectl(t.Context(), args...)
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Contains fails the test unless out contains all parts.
func Contains(t *testing.T, out string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in:\n%s", part, out)
		}
	}
}

// ApplyFile applies a file of testdata as admin, and deletes its objects when the test ends.
func ApplyFile(t *testing.T, file string) {
	t.Helper()
	MustKubectl(t, "", "apply", "-f", "testdata/"+file)
	t.Cleanup(func() {
		_ = Hub(t).Kubectl(context.WithoutCancel(t.Context()), "delete", "--ignore-not-found", "-f", "testdata/"+file).Run()
	})
}
