// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operatortest starts real clusters for the tests of operators: a management cluster, although it has no nodes, and managed clusters. They
// have kube-controller-managers, since only those delete the contents of namespaces and collect garbage; no pod is created.
package operatortest

import (
	"context"
	"errors"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/artifacts"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/test/await"
	"github.com/clusterhub/clusterhub/test/clusters"
)

// Shared are the clusters that the tests of a package share.
var Shared clusters.Shared

// Kubeconfig returns an admin's kubeconfig with embedded credentials.
func Kubeconfig(config *rest.Config) ([]byte, error) {
	if len(config.CAData) == 0 || len(config.CertData) == 0 && config.BearerToken == "" {
		return nil, errors.New("the credentials of the cluster are not in its configuration")
	}
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData, TLSServerName: config.ServerName}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"admin": {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "admin"}},
		CurrentContext: "c",
	})
}

// Bootstrap is a kubeconfig for a hub that does not exist, with a bootstrap token.
var Bootstrap = []byte("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: hub, user: agent}}], " +
	"clusters: [{name: hub, cluster: {server: 'https://hub.invalid'}}], users: [{name: agent, user: {token: bootstrap}}]}")

// Eventually waits until the condition holds.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	err := await.Until(t.Context(), await.Limit, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatalf("it never holds that %s", what)
	}
}

// installed has the hosts of the clusters for which Install was called.
var installed sync.Map

// Install creates what hub-operator needs on a cluster: the kinds, and its rights. No process is started. A cluster that has them is not changed: no
// test deletes them. Install also creates the definition of work records, as on a cluster where another agent ran: the garbage collector, which
// separates a record from the objects that it owns, discovers new kinds only every 30 seconds.
func Install(t testing.TB, config *rest.Config) {
	t.Helper()
	if _, ok := installed.Load(config.Host); ok {
		return
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := deploy.Operator{}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	data, err := artifacts.Deploy.ReadFile("deploy/agent-works/appliedmanifestworks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	records := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(data, &records.Object); err != nil {
		t.Fatal(err)
	}
	for _, o := range append(objects, records) {
		if o.GetKind() == "Deployment" {
			continue
		}
		o := o.DeepCopy()
		err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test"), client.ForceOwnership)
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"ClusterManagerList", "KlusterletList"} {
		Eventually(t, kind+" is served", func() bool {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(schema.GroupVersionKind{Group: "operator.open-cluster-management.io", Version: "v1", Kind: kind})
			return c.List(t.Context(), list) == nil
		})
	}
	installed.Store(config.Host, true)
}

// Gone verifies that an object is gone when the test ends: leftovers of one test would be reconciled by hub-operator in the next ones. It removes the
// finalizers of leftovers.
func Gone(t testing.TB, c client.Client, o client.Object) {
	t.Helper()
	left := o.DeepCopyObject().(client.Object)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
		defer cancel()
		err := c.Get(ctx, client.ObjectKeyFromObject(left), left)
		if apierrors.IsNotFound(err) {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		t.Errorf("the test has left %s behind", left.GetName())
		err = c.Patch(ctx, left, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		if err := errors.Join(client.IgnoreNotFound(err), client.IgnoreNotFound(c.Delete(ctx, left))); err != nil {
			t.Error(err)
		}
	})
}
