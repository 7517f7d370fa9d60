// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
)

// checkNamespaceFirst deletes the namespace of the servers, with the Secret in it, before the ClusterManager. After the Secret is restored, the hub
// is cleaned.
func checkNamespaceFirst(t *testing.T, w *world) {
	t.Helper()
	cm, p := w.half("orphan", long)
	namespace := func() *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cm.ServerNamespace()}}
	}
	w.deletes(namespace())
	eventually(t, "the namespace is gone", func() string {
		if err := w.management.client.Get(t.Context(), client.ObjectKeyFromObject(namespace()), namespace()); !apierrors.IsNotFound(err) {
			return fmt.Sprint(err)
		}
		return ""
	})
	w.deletes(cm)
	p.until(cm.Name, "it says what is missing", func(cm *operatorv1.ClusterManager) string {
		if said := fmt.Sprintf("%+v", cm.Status.Conditions); !strings.Contains(said, operatorv1.ExternalHubKubeconfig+" does not exist") {
			return said
		}
		return ""
	})
	if len(made(t, w.hub, cm.Name)) == 0 {
		t.Error("the hub has nothing of it: the test shows nothing")
	}
	w.create(namespace())
	w.give(cm, w.hub)
	w.leaves(p, cm.Name)
	w.deletes(namespace()) // the user created it, so it was not deleted
}

// checkHalf stops the operator after some writes, and deletes the ClusterManager then.
func checkHalf(t *testing.T, w *world) {
	t.Helper()
	for _, writes := range []int32{2, 40} {
		cm, p := w.half(fmt.Sprintf("half-%d", writes), writes)
		if !p.dead() {
			t.Errorf("all of it is there after %d writes", len(p.since(0)))
		}
		w.deletes(cm)
		again := w.process(long)
		w.leaves(again, cm.Name)
		again.hubs.CloseAll()
	}
}
