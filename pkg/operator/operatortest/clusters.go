// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operatortest has real clusters for the tests of operators: one that runs pods, although it has no nodes, and others that
// are served. They have kube-controller-managers, since what becomes of namespaces and of garbage only those decide; no pod is made.
package operatortest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/artifacts"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/local"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/test/await"
)

// Clusters are those that the tests of a package share: to start one takes longer than most of them.
type Clusters struct {
	lock     sync.Mutex
	dir      string
	provider *local.Provider
	started  map[string]*v1alpha1.Cluster
	configs  map[string]*rest.Config
}

// Shared are those of a package's tests.
var Shared Clusters

// Main runs the tests of a package, and ends the clusters that they have shared.
func (c *Clusters) Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "operatortest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c.dir = dir
	defer os.RemoveAll(dir)
	defer func() {
		for _, object := range c.started {
			_, _ = c.provider.Remove(context.Background(), object, clusterprovider.Profile{})
		}
		if c.provider != nil {
			_ = c.provider.Close()
		}
	}()
	return m.Run()
}

// Config is the way to the cluster of that name as its admin. It is started when it is first asked for.
func (c *Clusters) Config(t testing.TB, name string) *rest.Config {
	t.Helper()
	if os.Getenv("TEST_BIN_DIR") == "" {
		t.Skip("TEST_BIN_DIR does not say where etcd, kube-apiserver and kube-controller-manager are")
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.configs[name] == nil {
		config, err := c.start(name)
		if err != nil {
			t.Fatal(err)
		}
		if c.configs == nil {
			c.configs = map[string]*rest.Config{}
		}
		c.configs[name] = config
	}
	config := rest.CopyConfig(c.configs[name])
	config.QPS = -1
	return config
}

func (c *Clusters) start(name string) (config *rest.Config, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	if c.provider == nil {
		c.provider, err = local.New(local.Options{Dir: c.dir, BinDir: os.Getenv("TEST_BIN_DIR"), EndWithProvider: true, UnsafeNoFsync: true})
		if err != nil {
			return nil, err
		}
		c.started = map[string]*v1alpha1.Cluster{}
	}
	object := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uuid.NewUUID()}}
	c.started[name] = object
	var state clusterprovider.State
	err = wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (_ bool, err error) {
		state, err = c.provider.Ensure(ctx, object, clusterprovider.Profile{})
		return state.Ready, err
	})
	if err != nil {
		return nil, fmt.Errorf("the cluster is not ready: %w (%s)", err, state.Info)
	}
	return c.provider.Connect(ctx, object)
}

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
