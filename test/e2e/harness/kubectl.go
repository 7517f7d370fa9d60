// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/localhub"
)

// Overlay is the folder of an overlay of artifacts/deploy.
func Overlay(name string) string { return filepath.Join(Root, "artifacts", "deploy", name) }

// Kubectl runs kubectl on the shared hub and returns what it says.
func Kubectl(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	return kubectlOf(t, Hub(t), stdin, args...)
}

// MustKubectl is kubectl that has to succeed.
func MustKubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	return MustKubectlOf(t, Hub(t), stdin, args...)
}

// MustKubectlOf is kubectl that has to succeed on any hub.
func MustKubectlOf(t *testing.T, h *localhub.Hub, stdin string, args ...string) string {
	t.Helper()
	out, err := kubectlOf(t, h, stdin, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func kubectlOf(t *testing.T, h *localhub.Hub, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := h.Kubectl(t.Context(), args...)
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Contains fails the test unless all parts are in what was said.
func Contains(t *testing.T, out string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in:\n%s", part, out)
		}
	}
}

// ApplyFile applies a file of testdata as admin, and deletes what is in it at the end.
func ApplyFile(t *testing.T, file string) {
	t.Helper()
	MustKubectl(t, "", "apply", "-f", "testdata/"+file)
	t.Cleanup(func() {
		_ = Hub(t).Kubectl(context.WithoutCancel(t.Context()), "delete", "--ignore-not-found", "-f", "testdata/"+file).Run()
	})
}
