// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// TestRemove_RetainsObjectsOfOtherOwner lets another owner delete and recreate an object between the read and the delete of it.
func TestRemove_RetainsObjectsOfOtherOwner(t *testing.T) {
	live, err := client.NewWithWatch(operatortest.Shared.Config(t, "management"), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "r" + rand.String(6)}
	own, others := &corev1.ServiceAccount{ObjectMeta: meta}, &corev1.ServiceAccount{ObjectMeta: meta}
	own.Labels, others.Labels = map[string]string{operatorv1.LabelKlusterlet: "own"}, map[string]string{operatorv1.LabelKlusterlet: "other"}
	if err := live.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	deletes := 0
	c := &cluster{owner: apply.Owner{Labels: own.Labels}, client: interceptor.NewClient(live, interceptor.Funcs{
		Delete: func(ctx context.Context, live client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			deletes++
			if deletes == 1 {
				if err := errors.Join(live.Delete(ctx, own), live.Create(ctx, others)); err != nil {
					t.Error(err)
				}
			}
			return live.Delete(ctx, o, options...)
		},
	})}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	object.SetNamespace(meta.Namespace)
	object.SetName(meta.Name)
	left, err := c.remove(t.Context(), []*unstructured.Unstructured{object}, metav1.DeletePropagationBackground)
	if err != nil || len(left) > 0 || deletes == 0 {
		t.Errorf("after %d deletes %v are left: %v", deletes, left, err)
	}
	now := &corev1.ServiceAccount{}
	if err := live.Get(t.Context(), client.ObjectKeyFromObject(others), now); err != nil || now.UID != others.UID || now.DeletionTimestamp != nil {
		t.Errorf("the object of another owner is deleted: %v", err)
	}
	if err := client.IgnoreNotFound(live.Delete(t.Context(), others)); err != nil {
		t.Error(err)
	}
}
