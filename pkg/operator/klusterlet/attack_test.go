// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
)

// TestAttack_CopyTakesNothing: a copy of a Klusterlet has its finalizers, too. A rejected Klusterlet created nothing, so its
// deletion deletes nothing: neither the identity of the agent, nor the minted credentials.
func TestAttack_CopyTakesNothing(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler()
	first := w.applied(r, operatorv1.InstallModeSingleton, nil)
	w.secret(first, operatorv1.HubKubeconfigSecret, map[string][]byte{"kubeconfig": []byte("of the agent")})
	before := w.of(w.here, first)
	second := w.klusterlet(operatorv1.InstallModeSingleton, func(k *operatorv1.Klusterlet) {
		k.Name, k.Spec, k.Finalizers = "z"+k.Name, first.Spec, first.Finalizers
	})
	w.until(r, second, "it is refused", func(k *operatorv1.Klusterlet) bool {
		return strings.Contains(condition(k, operatorv1.ConditionKlusterletApplied).Message, "belongs to the agent of Klusterlet "+first.Name)
	})
	w.delete(second)
	w.until(r, second, "it is gone", isGone)
	key := client.ObjectKey{Namespace: first.AgentNamespace(), Name: operatorv1.HubKubeconfigSecret}
	if err := w.here.Get(t.Context(), key, &corev1.Secret{}); err != nil {
		t.Errorf("the identity of the agent has gone with the copy of its Klusterlet: %v", err)
	}
	if after := w.of(w.here, first); strings.Join(after, " ") != strings.Join(before, " ") {
		t.Errorf("there were %q, and there are %q", before, after)
	}
	w.delete(first)
	w.until(r, first, "it is gone", isGone)
	w.expectNothing(first)
	if err := w.here.Get(t.Context(), key, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("the identity of an agent that is gone is still there: %v", err)
	}
}

// TestAttack_OldAnnotationDoesNotAbandonCluster: the annotation may come from a copy of a Klusterlet that was being deleted, or from
// another user. Accounts with rights would stay on the managed cluster because it did not respond once.
func TestAttack_OldAnnotationDoesNotAbandonCluster(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler()
	k := w.applied(r, operatorv1.InstallModeHosted, func(k *operatorv1.Klusterlet) {
		k.Annotations = map[string]string{operatorv1.AnnotationEvictionTimestamp: "2001-01-01T00:00:00Z"}
	})
	external := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.AgentNamespace(), Name: operatorv1.ExternalManagedKubeconfig}}
	w.delete(external)
	w.delete(k)
	w.clock.SetTime(time.Now())
	for range 3 {
		w.once(r, k)
	}
	if w.now(k) == nil {
		t.Fatal("the managed cluster was given up at once")
	}
	w.until(r, k, "it says what is wrong", func(k *operatorv1.Klusterlet) bool {
		return condition(k, operatorv1.ConditionKlusterletApplied).Reason == reasonUnreachable
	})
	w.secret(k, operatorv1.ExternalManagedKubeconfig, map[string][]byte{"kubeconfig": w.source})
	w.until(r, k, "it is gone", isGone)
	w.expectNothing(k)
}

// TestAttack_KlusterletDoesNotTakeOverCommandLineAgent: both would share one identity, which would be deleted with the Klusterlet.
func TestAttack_KlusterletDoesNotTakeOverCommandLineAgent(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler()
	k := w.klusterlet(operatorv1.InstallModeDefault, func(k *operatorv1.Klusterlet) {
		k.Finalizers = []string{operatorv1.KlusterletFinalizer}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.Spec.Namespace, Labels: map[string]string{
			deploy.LabelManagedBy: deploy.ManagedBy, deploy.AgentLabel: deploy.AgentName}}}
		if err := w.here.Create(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
	})
	w.secret(k, operatorv1.HubKubeconfigSecret, map[string][]byte{"kubeconfig": []byte("of the agent")})
	w.until(r, k, "it is refused", func(k *operatorv1.Klusterlet) bool {
		return strings.Contains(condition(k, operatorv1.ConditionKlusterletApplied).Message, "that kubectl hub join has installed")
	})
	w.delete(k)
	w.until(r, k, "it is gone", isGone)
	w.expectNothing(k)
	key := client.ObjectKey{Namespace: k.AgentNamespace(), Name: operatorv1.HubKubeconfigSecret}
	if err := w.here.Get(t.Context(), key, &corev1.Secret{}); err != nil {
		t.Errorf("the identity of the agent has gone with a Klusterlet: %v", err)
	}
}
