// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package exclusive_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	noopoteltrace "go.opentelemetry.io/otel/trace/noop"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterinstall "github.com/clusterhub/clusterhub/pkg/apis/cluster/install"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/etcd"
	"github.com/clusterhub/clusterhub/pkg/registry/backend"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedclusterset"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/test/await"
)

var (
	scheme   = runtime.NewScheme()
	codecs   = serializer.NewCodecFactory(scheme)
	server   *etcd.Server
	prefixes atomic.Int64
)

func TestMain(m *testing.M) {
	clusterinstall.Install(scheme)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "exclusive")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		options := etcd.NewOptions()
		options.DataDir, options.UnsafeNoFsync = dir, true
		server, err = etcd.Start(context.Background(), *options)
		if err != nil {
			panic(err)
		}
		defer server.Stop()
		return m.Run()
	}())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hub has the managedclustersets of one hub, with the decorator under test in their storage.
type hub struct {
	t      *testing.T
	config *storagebackend.Config
	etcd   *clientv3.Client
	// connect is used by the next replica to connect to etcd.
	connect backend.Connect
}

func newHub(t *testing.T) *hub {
	t.Helper()
	config := storagebackend.NewDefaultConfig(fmt.Sprintf("/test-%d", prefixes.Add(1)),
		codecs.LegacyCodec(v1beta1.SchemeGroupVersion))
	config.Transport = server.Transport()
	config.Transport.TracerProvider = noopoteltrace.NewTracerProvider()
	config.CompactionInterval = 0
	tls, err := transport.TLSInfo{
		CertFile: config.Transport.CertFile, KeyFile: config.Transport.KeyFile,
		TrustedCAFile: config.Transport.TrustedCAFile,
	}.ClientConfig()
	must(t, err)
	client, err := clientv3.New(clientv3.Config{Endpoints: config.Transport.ServerList, TLS: tls})
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return &hub{t: t, config: config, etcd: client, connect: backend.Dial}
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (h *hub) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig:  h.config.ForResource(resource),
		ResourcePrefix: "sets",
		Decorator:      managedclusterset.Decorator(h.connect),
	}, nil
}

// replica returns the resource as in one replica of the API server.
func (h *hub) replica() replica {
	h.t.Helper()
	s, err := managedclusterset.Kind.NewStorage(scheme, h)
	must(h.t, err)
	h.t.Cleanup(s.Destroy)
	must(h.t, wait.PollUntilContextTimeout(h.t.Context(), time.Millisecond, await.Limit, true,
		func(context.Context) (bool, error) {
			return s.Storage.Storage.Storage.ReadinessCheck() == nil, nil
		}))
	return replica{h.t, s}
}

type replica struct {
	t *testing.T
	*hubgeneric.Resource
}

func (r replica) context() context.Context {
	ctx := request.WithNamespace(r.t.Context(), metav1.NamespaceNone)
	return request.WithRequestInfo(ctx, &request.RequestInfo{APIGroup: cluster.GroupName, APIVersion: "v1beta1"})
}

func (r replica) create(set *cluster.ManagedClusterSet, options ...string) error {
	_, err := r.Create(r.context(), set, rest.ValidateAllObjectFunc,
		&metav1.CreateOptions{DryRun: options})
	return err
}

func (r replica) update(name string, change func(*cluster.ManagedClusterSet), options ...string) error {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		set := old.DeepCopyObject().(*cluster.ManagedClusterSet)
		change(set)
		return set, nil
	})
	_, _, err := r.Update(r.context(), name, info, rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc,
		false, &metav1.UpdateOptions{DryRun: options})
	return err
}

func (r replica) delete(name string, options ...string) error {
	_, _, err := r.Delete(r.context(), name, rest.ValidateAllObjectFunc,
		&metav1.DeleteOptions{DryRun: options})
	return err
}

const dryRun = metav1.DryRunAll

// legacy returns a set that claims the label clusterset=<name>.
func legacy(name string) *cluster.ManagedClusterSet {
	return &cluster.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: cluster.ManagedClusterSetSpec{
		ClusterSelector: cluster.ManagedClusterSelector{SelectorType: cluster.ExclusiveClusterSetLabel}}}
}

func claiming(name, key, value string) *cluster.ManagedClusterSet {
	set := legacy(name)
	claim(key, value)(set)
	return set
}

func claim(key, value string) func(*cluster.ManagedClusterSet) {
	return func(set *cluster.ManagedClusterSet) {
		set.Spec.ClusterSelector = cluster.ManagedClusterSelector{
			SelectorType: cluster.ExclusiveLabel, ExclusiveLabel: &cluster.ManagedClusterLabel{Key: key, Value: value}}
	}
}

func claimNothing(set *cluster.ManagedClusterSet) {
	set.Spec.ClusterSelector = cluster.ManagedClusterSelector{
		SelectorType:  cluster.LabelSelector,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"x": "y"}}}
}

const region = cluster.ReservedLabelPrefixInfo + "region"

// claims returns the claims in etcd, as "<key>/<value>=<holder>", without the prefixes of the keys.
func (h *hub) claims() []string {
	h.t.Helper()
	directory := h.config.Prefix + "/exclusive-labels/"
	got, err := h.etcd.Get(h.t.Context(), directory, clientv3.WithPrefix())
	must(h.t, err)
	var claims []string
	for _, kv := range got.Kvs {
		text := strings.TrimPrefix(string(kv.Key), directory)
		text = strings.TrimPrefix(strings.TrimPrefix(text, cluster.ReservedLabelPrefixInfo),
			cluster.ReservedLabelPrefixCluster)
		claims = append(claims, text+"="+string(kv.Value))
	}
	return claims
}

func (h *hub) expectClaims(want ...string) {
	h.t.Helper()
	if got := h.claims(); !slices.Equal(got, want) {
		h.t.Fatalf("claims are %v, want %v", got, want)
	}
}

// expectConflict checks that the error is a 409 and names the holder and the label.
func expectConflict(t *testing.T, err error, holder, label string) {
	t.Helper()
	if !apierrors.IsConflict(err) {
		t.Fatalf("got %v, want 409 Conflict", err)
	}
	if !strings.Contains(err.Error(), fmt.Sprintf("%q", holder)) || !strings.Contains(err.Error(), label) {
		t.Errorf("the answer %q does not name the holder %q and the label %s", err, holder, label)
	}
}

// race runs functions concurrently and returns their errors.
func race(functions ...func() error) []error {
	errs := make([]error, len(functions))
	var ready, done sync.WaitGroup
	ready.Add(len(functions))
	for i, f := range functions {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			errs[i] = f()
		})
	}
	done.Wait()
	return errs
}
