// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestRegistration_InANamespaceThatExists verifies that a cluster whose namespace existed before cannot join while the namespace has objects,
// and that it joins when an admin gives the namespace to the cluster. The test takes two seconds, for which accept watches what the hub does with the
// cluster.
func TestRegistration_InANamespaceThatExists(t *testing.T) {
	m := newManaged(t, harness.Hub(t))
	kube := harness.Kube(t, m.hub.AdminConfig()).CoreV1()
	harness.Must(kube.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: harness.Named(m.name)}, metav1.CreateOptions{}))(t)
	secret := harness.Must(kube.Secrets(m.name).Create(t.Context(), &corev1.Secret{ObjectMeta: harness.Named("theirs")}, metav1.CreateOptions{}))(t)
	m.agent(t)
	harness.Eventually(t, "the cluster asks for a certificate", func(context.Context) (bool, error) { return len(m.requests(t)) == 1, nil })

	plugin := harness.Plugin{Kubeconfig: m.hub.AdminKubeconfig()}
	_, told, err := plugin.Run(t, "accept", "--clusters", m.name, "--skip-approve-check")
	if err != nil {
		t.Fatalf("%v: %s", err, told)
	}
	harness.Contains(t, told, "is accepted, but the hub cannot register it: the namespace", "--adopt-namespace")
	_, told, err = plugin.Run(t, "accept", "--clusters", m.name, "--adopt-namespace")
	if err == nil || !strings.Contains(told, "it must be empty, but has secrets theirs") {
		t.Errorf("%v: %s", err, told)
	}
	if err := kube.Secrets(m.name).Delete(t.Context(), secret.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	plugin.Must(t, "accept", "--clusters", m.name, "--adopt-namespace")
	m.awaitCondition(t, registration.ConditionJoined, metav1.ConditionTrue)
	m.awaitCondition(t, registration.ConditionAvailable, metav1.ConditionTrue)

	// The hub must not delete the namespace, whatever happens to the cluster.
	if err := m.clusters(t).Delete(t.Context(), m.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the cluster is gone", func(ctx context.Context) (bool, error) {
		_, err := m.clusters(t).Get(ctx, m.name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if namespace := harness.Must(kube.Namespaces().Get(t.Context(), m.name, metav1.GetOptions{}))(t); namespace.DeletionTimestamp != nil {
		t.Error("the namespace goes with the cluster")
	}
}
