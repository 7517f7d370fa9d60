// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package operatortest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Work creates what a work agent leaves of a work: an object, and the record that owns it.
func Work(t testing.TB, c client.Client, agentID, name string) *corev1.ConfigMap {
	t.Helper()
	record := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"hubHash": "h", "manifestWorkName": name, "agentID": agentID}}}
	record.SetGroupVersionKind(schema.GroupVersionKind{Group: "work.open-cluster-management.io", Version: "v1", Kind: "AppliedManifestWork"})
	record.SetName("h-" + name)
	record.SetFinalizers([]string{"cluster.open-cluster-management.io/applied-manifest-work-cleanup"})
	if err := c.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: record.GetAPIVersion(), Kind: record.GetKind(), Name: record.GetName(), UID: record.GetUID()}}}}
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	record.Object["status"] = map[string]any{"appliedResources": []any{map[string]any{
		"version": "v1", "resource": "configmaps", "namespace": "default", "name": name, "uid": string(object.UID)}}}
	if err := c.Status().Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	return object
}
