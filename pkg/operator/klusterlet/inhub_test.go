// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/manager"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/operator"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
	"github.com/clusterhub/clusterhub/test/await"
)

// applied creates objects, except pods and kinds that only a hub serves.
func applied(t *testing.T, c client.Client, objects []*unstructured.Unstructured, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if slices.Contains([]string{"Deployment", "APIService", "PersistentVolumeClaim"}, o.GetKind()) {
			continue
		}
		if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test"), client.ForceOwnership); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// mayActAsOperator reports whether hub-controller-manager may impersonate hub-operator.
func mayActAsOperator(t *testing.T, c client.Client) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:clusterhub-system:hub-controller-manager", Groups: []string{"system:serviceaccounts", "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "serviceaccounts",
			Namespace: operator.Namespace, Name: operator.ServiceAccount},
	}}
	if err := c.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// TestProcess_HubIsManagementCluster: hub-controller-manager has the rights and the policies of every hub, and impersonates hub-operator if
// it is configured to and may.
func TestProcess_HubIsManagementCluster(t *testing.T) {
	admin := operatortest.Shared.Config(t, "management")
	operatortest.Install(t, admin)
	s := runtime.NewScheme()
	if err := errors.Join(operatorv1.AddToScheme(s), scheme.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(admin, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := deploy.Hub{}.Objects()
	applied(t, c, objects, err)
	if mayActAsOperator(t, c) {
		t.Error("by default, hub-controller-manager may act as hub-operator")
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: deploy.ManagerNamespace, Name: deploy.Manager}}
	token := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token.Status.Token
	kubeconfig, err := operatortest.Kubeconfig(config)
	if err != nil {
		t.Fatal(err)
	}
	o := manager.NewOptions()
	o.Flags() // sets the defaults of the controllers
	o.Kubeconfig, o.HealthAddress, o.Metrics.Address = filepath.Join(t.TempDir(), "kubeconfig"), "0", "0"
	o.Controllers = []string{"klusterlets", "clustermanagers"}
	if err := errors.Join(os.WriteFile(o.Kubeconfig, kubeconfig, 0o600), o.Validate()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("hub-controller-manager has ended: %v", err)
			}
		case <-time.After(await.Limit):
			t.Errorf("hub-controller-manager does not end within %s", await.Limit)
		}
	})
	objects, err = deploy.Operator{InHub: true}.Objects()
	applied(t, c, objects, err)
	if slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" }) {
		t.Error("there are pods of hub-operator")
	}
	// kube-apiserver authorizes with the roles in its cache, which is updated a moment later.
	operatortest.Eventually(t, "hub-controller-manager may act as hub-operator", func() bool { return mayActAsOperator(t, c) })
	k := made(t, c, operatorv1.InstallModeSingleton, nil)
	waits(t, c, k, operatorv1.ConditionKlusterletApplied, metav1.ConditionTrue)
	gone(t, c, k)
}
