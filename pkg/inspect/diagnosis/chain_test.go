// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"os/exec"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPaste_IsShellSafe verifies that names that other users choose can be pasted into a shell, and run nothing.
func TestPaste_IsShellSafe(t *testing.T) {
	for _, name := range []string{"plain", "with space", "$(touch x)", "`id`", "it's", `a"b`, "a;b", "-rf", "*", "", "a\\b", "!x", "~", "#x", "a&b|c"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", ShellCommand("printf", "%s", name)).Output()
		if err != nil && name != "-rf" || string(out) != name {
			t.Errorf("%q becomes %q: %v", name, out, err)
		}
	}
	for _, name := range []string{"a\nb", "\x1b[2J", "a\u202eb", "é"} {
		if got := ShellWord(name); got != "<A NAME WITH UNUSUAL CHARACTERS>" {
			t.Errorf("%q becomes %q", name, got)
		}
	}
}

func TestWhoSet_ReturnsLast(t *testing.T) {
	object := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "old", Time: new(before(2e9 * 60)), FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:a/b":{}}}}`)},
		{Manager: "new", Time: new(before(1e9 * 60)), FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:a/b":{}}}}`)},
		{Manager: "else", Time: new(before(1e9)), FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)},
		{Manager: "none"}, {Manager: "bad", FieldsV1: metav1.NewFieldsV1(`[`)},
	}}
	if got := whoSet(object, now, "metadata", "labels", "a/b"); got != "by new, 60s ago" {
		t.Errorf("got %q", got)
	}
	if got := whoSet(object, now, "metadata", "labels", "c"); got != "" {
		t.Errorf("got %q of a label that is not there", got)
	}
}
