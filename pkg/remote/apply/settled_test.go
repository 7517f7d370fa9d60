// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestSettled_WritesOnlyChanges: an object that is as given is not written again; a change by others is reverted, and the removal of a
// field is sent to the server.
func TestSettled_WritesOnlyChanges(t *testing.T) {
	given := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "a", "labels": map[string]any{"x": "y"}},
			"spec": map[string]any{
				"replicas": int64(2), "paused": false, "empty": map[string]any{},
				"args": []any{"a", map[string]any{"name": "b"}},
			},
		}}
	}
	var sent *unstructured.Unstructured
	strategy := Settled(func(_ context.Context, _ client.Client, want, _ client.Object) error {
		sent = want.(*unstructured.Unstructured)
		return nil
	})
	is := func(want, have *unstructured.Unstructured) bool {
		t.Helper()
		sent = nil
		var there client.Object
		if have != nil {
			there = have
		}
		if err := strategy(t.Context(), nil, want, there); err != nil {
			t.Fatal(err)
		}
		return sent != nil
	}
	if !is(given(), nil) {
		t.Fatal("what is not there is not sent")
	}
	// The server adds defaults and a status, and omits what is false.
	stored := func() *unstructured.Unstructured {
		there := given()
		there.SetAnnotations(sent.GetAnnotations())
		there.SetUID("1")
		there.SetResourceVersion("7")
		there.Object["status"] = map[string]any{"replicas": int64(1)}
		spec := there.Object["spec"].(map[string]any)
		delete(spec, "paused")
		spec["revisionHistoryLimit"] = int64(10)
		spec["args"].([]any)[1].(map[string]any)["imagePullPolicy"] = "Always"
		return there
	}
	there := stored()
	if is(given(), there.DeepCopy()) {
		t.Error("nothing has changed, and it is sent")
	}
	for what, change := range map[string]func(o *unstructured.Unstructured){
		"a field":         func(o *unstructured.Unstructured) { o.Object["spec"].(map[string]any)["replicas"] = int64(3) },
		"a field is gone": func(o *unstructured.Unstructured) { delete(o.Object["spec"].(map[string]any), "replicas") },
		"a map is gone":   func(o *unstructured.Unstructured) { delete(o.Object["spec"].(map[string]any), "empty") },
		"paused":          func(o *unstructured.Unstructured) { o.Object["spec"].(map[string]any)["paused"] = true },
		"a label":         func(o *unstructured.Unstructured) { o.SetLabels(nil) },
		"the annotation":  func(o *unstructured.Unstructured) { o.SetAnnotations(nil) },
		"an item":         func(o *unstructured.Unstructured) { o.Object["spec"].(map[string]any)["args"].([]any)[0] = "c" },
		"one item more": func(o *unstructured.Unstructured) {
			spec := o.Object["spec"].(map[string]any)
			spec["args"] = append(spec["args"].([]any), "c")
		},
		"another type": func(o *unstructured.Unstructured) { o.Object["spec"].(map[string]any)["replicas"] = "2" },
	} {
		changed := there.DeepCopy()
		change(changed)
		if !is(given(), changed) {
			t.Errorf("others have changed %s, and it stays so", what)
		}
	}
	less := given()
	delete(less.Object["spec"].(map[string]any), "replicas")
	if !is(less, there.DeepCopy()) {
		t.Error("a field that is not given any more stays")
	}
}
