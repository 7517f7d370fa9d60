// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operatortest has real clusters for the tests of operators: one that runs pods, although it has no nodes, and others that
// are served. They have kube-controller-managers, since what becomes of namespaces and of garbage only those decide; no pod is made.
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

// Kubeconfig is an admin's, with all in it.
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

// Bootstrap is a kubeconfig for a hub that is nowhere, with a bootstrap token.
var Bootstrap = []byte("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: hub, user: agent}}], " +
	"clusters: [{name: hub, cluster: {server: 'https://hub.invalid'}}], users: [{name: agent, user: {token: bootstrap}}]}")

// Eventually waits until something holds.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	err := await.Until(t.Context(), await.Limit, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatalf("it never holds that %s", what)
	}
}

// installed are the clusters, by their hosts, that Install has been called for.
var installed sync.Map

// Install gives a cluster what hub-operator needs: the kinds, and its rights. No process is started. A cluster that has them is left as it
// is: no test takes them away. It has the records of works, too, as one where another agent ran: the garbage collector, which parts a record
// from what it owns, looks for new kinds every 30 seconds only.
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

// Gone wants an object to be gone when the test ends: what is left of one test is work for hub-operator in the next ones. It is forced to
// go then.
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
