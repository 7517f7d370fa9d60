// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

func newDefinition() *unstructured.Unstructured {
	plural := "x" + rand.String(6) + "s"
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": plan.Definitions.Kind, "metadata": map[string]any{"name": plural + ".example.com"},
		"spec": map[string]any{"group": "example.com", "scope": "Cluster", "names": map[string]any{"plural": plural, "kind": "X" + plural},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}}}}}
}

// TestShared_ConcurrentWritesAreOneEach: many Klusterlets may be added to a cluster at once. None makes another one retry, and none recreates what was
// just deleted.
func TestShared_ConcurrentWritesAreOneEach(t *testing.T) {
	w := newWorld(t)
	definition := newDefinition()
	const many = 20
	live := w.reconciler().client
	one := func(n int, count *writes) *cluster {
		return &cluster{client: count.wrap(live), mark: markOf(fmt.Sprintf("k%d", n), types.UID(fmt.Sprint(n)), "m")}
	}
	if err := one(0, &writes{}).share(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	counts, results := [many + 1]writes{}, make(chan error)
	for n := 1; n <= many; n++ {
		go func() { results <- one(n, &counts[n]).share(t.Context(), definition) }()
	}
	for range many {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	for n := 1; n <= many; n++ {
		if counts[n].n != 1 {
			t.Errorf("Klusterlet %d writes %d times", n, counts[n].n)
		}
	}
	applier := apply.Applier{Client: live}
	found, err := applier.Get(t.Context(), definition)
	if err != nil || marks(found.(*unstructured.Unstructured)) != many+1 {
		t.Fatalf("of %d Klusterlets there are the marks in %v: %v", many+1, found.GetLabels(), err)
	}
	for n := range many + 1 {
		last := one(n, &writes{})
		last.client = w.here // it maps new kinds, too
		if err := last.unshare(t.Context(), definition); err != nil {
			t.Error(err)
		}
	}
	operatortest.Eventually(t, "the definition is gone", func() bool {
		have, err := applier.Get(t.Context(), definition)
		return err == nil && have == nil
	})
	if err := applyShared(t.Context(), live, "test", definition.DeepCopy(), found); !apierrors.IsConflict(err) {
		t.Errorf("what has gone was applied: %v", err)
	}
}

// TestShared_ConcurrentlyDeletedDefinition: a definition may be deleted, or recreated, between the read of it and the label: it must still
// be the same to be used.
func TestShared_ConcurrentlyDeletedDefinition(t *testing.T) {
	for name, test := range map[string]struct {
		anew bool
		want error
	}{"it is being deleted": {false, errDeleting}, "it was made anew": {true, nil}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			definition := newDefinition()
			made := definition.DeepCopy()
			made.SetFinalizers([]string{"example.com/held"})
			if err := w.here.Create(t.Context(), made); err != nil {
				t.Fatal(err)
			}
			release := func() {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
				if err := client.IgnoreNotFound(w.here.Patch(context.WithoutCancel(t.Context()), made, patch)); err != nil {
					t.Error(err)
				}
			}
			applies := 0
			c := &cluster{mark: markOf("k", "u", "m"), client: interceptor.NewClient(w.reconciler().client.(client.WithWatch), interceptor.Funcs{
				Apply: func(ctx context.Context, i client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
					applies++
					if applies > 1 {
						return i.Apply(ctx, o, options...)
					}
					w.delete(made)
					if test.anew {
						release()
						operatortest.Eventually(t, "there is another one", func() bool {
							return w.here.Create(ctx, definition.DeepCopy()) == nil
						})
					}
					return i.Apply(ctx, o, options...)
				},
			})}
			if err := c.share(t.Context(), definition); !errors.Is(err, test.want) {
				t.Errorf("the error is %v, want %v", err, test.want)
			}
			found, err := (&apply.Applier{Client: w.here}).Get(t.Context(), definition)
			if err != nil || found == nil || test.anew && (found.GetUID() == made.GetUID() || marks(found.(*unstructured.Unstructured)) != 1) {
				t.Errorf("after %d tries there is %v: %v", applies, found, err)
			}
			w.delete(definition)
			if !test.anew {
				release()
			}
		})
	}
}
