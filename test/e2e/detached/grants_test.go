// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package detached

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// rights are the rights of a user. The rights of the agents of Klusterlets are tested beside their controller.
type rights = operatortest.Rights

// withoutRights returns a ServiceAccount without any grant: it has the rights of every ServiceAccount.
func withoutRights(t *testing.T, on *localhub.Instance) *rest.Config {
	t.Helper()
	accounts := harness.Kube(t, on.AdminConfig()).CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	account := harness.Must(accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: harness.Named("without-rights")}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() { _ = accounts.Delete(context.WithoutCancel(t.Context()), account.Name, metav1.DeleteOptions{}) })
	return accountOf(t, on, account.Namespace, account.Name)
}

// accountOf returns a client configuration of a ServiceAccount of a cluster.
func accountOf(t *testing.T, on *localhub.Instance, namespace, name string) *rest.Config {
	t.Helper()
	return operatortest.AccountOf(t, on.AdminConfig(), namespace, name)
}

// allowed reports whether the user has one right: in all namespaces, and for all names, unless they are given.
func allowed(t *testing.T, config *rest.Config, verb string, resource schema.GroupResource, namespace, name string) bool {
	t.Helper()
	return operatortest.Allowed(t, config, verb, resource, namespace, name)
}
