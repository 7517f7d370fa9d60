// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
)

// TestAttack_DeletedSourceIsNotUsed: the user deletes the credentials of an admin. Then they are removed from memory, and no watch uses
// them any more. Other problems of a Klusterlet do not stop the watches.
func TestAttack_DeletedSourceIsNotUsed(t *testing.T) {
	secret := func(k *operatorv1.Klusterlet, name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.AgentNamespace(), Name: name}}
	}
	isUnready := func(k *operatorv1.Klusterlet) bool {
		return condition(k, operatorv1.ConditionReadyToApply).Status == metav1.ConditionFalse
	}
	for name, test := range map[string]struct {
		breaks func(w *world, k *operatorv1.Klusterlet)
		holds  func(k *operatorv1.Klusterlet) bool
		stays  bool
	}{
		"the Secret is gone": {func(w *world, k *operatorv1.Klusterlet) { w.delete(secret(k, operatorv1.ExternalManagedKubeconfig)) }, isUnready, false},
		"there is nothing in it": {func(w *world, k *operatorv1.Klusterlet) {
			w.secret(k, operatorv1.ExternalManagedKubeconfig, map[string][]byte{"kubeconfig": []byte("no")})
		}, isUnready, false},
		"the Klusterlet is refused": {func(w *world, k *operatorv1.Klusterlet) {
			now := w.now(k)
			now.Spec.Clusterhub = &operatorv1.KlusterletClusterhub{Works: operatorv1.KlusterletWorks{Role: "admin", Namespaces: []string{k.ManagedNamespace()}}}
			if err := w.here.Update(w.Context(), now); err != nil {
				w.Fatal(err)
			}
		}, func(k *operatorv1.Klusterlet) bool { return !isApplied(k) }, false},
		"the way to the hub is gone": {func(w *world, k *operatorv1.Klusterlet) { w.delete(secret(k, operatorv1.BootstrapHubKubeconfig)) }, isUnready, true},
		"the Secret is gone, and the Klusterlet goes": {func(w *world, k *operatorv1.Klusterlet) {
			w.delete(secret(k, operatorv1.ExternalManagedKubeconfig))
			w.delete(k)
		}, func(k *operatorv1.Klusterlet) bool {
			return condition(k, operatorv1.ConditionKlusterletApplied).Reason == reasonUnreachable
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.reconciler()
			k := w.applied(r, operatorv1.InstallModeHosted, nil)
			if !r.connections.Has(k.Name) {
				t.Fatal("there is no way to the managed cluster: the test shows nothing")
			}
			test.breaks(w, k)
			w.until(r, k, "it says so", test.holds)
			if stays := r.connections.Has(k.Name); stays != test.stays {
				t.Errorf("the way to the managed cluster is there: %t, want %t", stays, test.stays)
			}
			w.secret(k, operatorv1.ExternalManagedKubeconfig, map[string][]byte{"kubeconfig": w.source})
			w.delete(k)
			w.until(r, k, "it is gone", isGone)
			w.expectNothing(k)
		})
	}
}
