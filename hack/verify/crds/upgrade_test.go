// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
)

// TestOldObjects_CanBeUpdated: an object that was made before there were these rules, as by Open Cluster Management's own
// definition, can be worked on and removed, whatever it is called and wherever it runs.
func TestOldObjects_CanBeUpdated(t *testing.T) {
	client := server(t)
	ours := crd(t, klusterlets)
	lax := ours.DeepCopy()
	versions, _, err := unstructured.NestedSlice(lax.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	versions[0].(map[string]any)["schema"] = map[string]any{
		"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
	}
	if err := unstructured.SetNestedSlice(lax.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	served := func(definition *unstructured.Unstructured) {
		t.Helper()
		current, err := client.Resource(crdKind).Get(context.Background(), definition.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		current.Object["spec"] = definition.DeepCopy().Object["spec"]
		if _, err := client.Resource(crdKind).Update(context.Background(), current, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	probe := func() bool { return creates(t, klusterlets, "probe", `{clusterName: NO}`) == nil }

	const finalizer = "operator.open-cluster-management.io/klusterlet-cleanup"
	old := map[string]string{
		"kube-system":                          `{deployOption: {mode: Hosted}}`,
		"a.b":                                  `{deployOption: {mode: SingletonHosted}}`,
		"without":                              ``,
		"other":                                `{deployOption: {mode: Elsewhere}, clusterName: UPPER, namespace: anything}`,
		"a-name-that-is-longer-than-what-fits": `{deployOption: {mode: Detached}}`,
		"a-klusterlet-with-a-name-of-more-than-40-characters": `{deployOption: {mode: Default}}`,
		"c.d": `{deployOption: {mode: Default}}`,
	}
	served(lax)
	t.Cleanup(func() { served(ours) })
	worktest.Eventually(t, "the other schema is served", probe)
	for name, spec := range old {
		o := object(t, klusterlets, name, spec)
		o.SetFinalizers([]string{finalizer})
		if _, err := of(client, klusterlets).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	served(ours)
	worktest.Eventually(t, "our schema is served", func() bool { return !probe() })
	for name := range old {
		t.Run(name, func(t *testing.T) {
			k := change{client: client, resource: klusterlets, name: name}
			for what, write := range map[string]func() error{
				"its status": func() error {
					return k.patch(t, types.MergePatchType, map[string]any{"status": map[string]any{"observedGeneration": 1}}, metav1.PatchOptions{}, "status")
				},
				"another field of it": func() error {
					return k.patch(t, types.MergePatchType, map[string]any{"spec": map[string]any{"priorityClassName": "p"}}, metav1.PatchOptions{})
				},
				"its deletion": func() error { return of(client, klusterlets).Delete(t.Context(), name, metav1.DeleteOptions{}) },
			} {
				if err := write(); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			if err := k.patch(t, types.MergePatchType, map[string]any{"metadata": map[string]any{"finalizers": nil}}, metav1.PatchOptions{}); err != nil {
				t.Errorf("its finalizer: %v", err)
			}
			worktest.Eventually(t, name+" is gone", func() bool {
				_, err := of(client, klusterlets).Get(t.Context(), name, metav1.GetOptions{})
				return err != nil
			})
		})
	}
}
