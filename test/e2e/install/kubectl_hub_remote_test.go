// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// appliesOnlyOurs verifies that a real server meets the assumptions of pkg/remote: when other clients write between a read and the write that
// follows, no object of theirs is changed or deleted. It leaves no objects.
func appliesOnlyOurs(t *testing.T, config *rest.Config) {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := &apply.Applier{Client: c, Owner: apply.Owner{Labels: map[string]string{"example.com/owner": "us"}}, Strategy: apply.ServerSideApply("us")}
	configMap := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"namespace": "default", "name": "applied"}, "data": map[string]any{"key": value}}}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	there := func() *unstructured.Unstructured {
		t.Helper()
		have, err := a.Get(t.Context(), configMap(""))
		must(err)
		if have == nil {
			t.Fatal("there is nothing")
		}
		return have.(*unstructured.Unstructured)
	}
	untouched := func(doing string, err error, theirs *unstructured.Unstructured) {
		t.Helper()
		if now := there(); !errors.As(err, new(*apply.NotOurs)) || now.GetResourceVersion() != theirs.GetResourceVersion() {
			t.Errorf("%s: %v, and there is %v", doing, err, now)
		}
	}

	must(a.Apply(t.Context(), configMap("a"), nil))
	made := there()
	must(a.Apply(t.Context(), configMap("a"), made))
	if now := there(); !a.Owner.Owns(now) || now.GetResourceVersion() != made.GetResourceVersion() {
		t.Errorf("applied twice, it is %v", now)
	}

	// A different client removes our label after a read, and then replaces the object.
	theirs := there()
	theirs.SetLabels(nil)
	must(c.Update(t.Context(), theirs))
	untouched("a change of what was ours", a.Apply(t.Context(), configMap("b"), made), theirs)
	if ours, err := a.Delete(t.Context(), made); ours || err != nil {
		t.Errorf("a deletion of what was ours: %t, %v", ours, err)
	}
	must(c.Delete(t.Context(), theirs))
	theirs = configMap("theirs")
	must(c.Create(t.Context(), theirs))
	untouched("a change of what was replaced", a.Apply(t.Context(), configMap("b"), made), theirs)
	if ours, err := a.Delete(t.Context(), made); ours || err != nil {
		t.Errorf("a deletion of what was replaced: %t, %v", ours, err)
	}
	// At the read, the object did not exist.
	untouched("a creation", a.Apply(t.Context(), configMap("b"), nil), theirs)

	// A deleted object is created again.
	must(c.Delete(t.Context(), theirs))
	must(a.Apply(t.Context(), configMap("b"), made))
	if ours, err := a.Delete(t.Context(), there()); !ours || err != nil {
		t.Errorf("a deletion of ours: %t, %v", ours, err)
	}
}
