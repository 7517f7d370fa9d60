// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	noopoteltrace "go.opentelemetry.io/otel/trace/noop"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterinstall "github.com/clusterhub/clusterhub/pkg/apis/cluster/install"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	clusterviewinstall "github.com/clusterhub/clusterhub/pkg/apis/clusterview/install"
	clusterviewv1 "github.com/clusterhub/clusterhub/pkg/apis/clusterview/v1"
	clusterviewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/clusterview/v1alpha1"
	viewinstall "github.com/clusterhub/clusterhub/pkg/apis/view/install"
	"github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	visibilityapi "github.com/clusterhub/clusterhub/pkg/apis/visibility"
	"github.com/clusterhub/clusterhub/pkg/etcd"
	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember"
	"github.com/clusterhub/clusterhub/pkg/registry/view/derived"
	"github.com/clusterhub/clusterhub/pkg/registry/view/filtered"
	"github.com/clusterhub/clusterhub/pkg/registry/view/managedcluster"
	"github.com/clusterhub/clusterhub/pkg/registry/view/managedclusterset"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
	"github.com/clusterhub/clusterhub/pkg/registry/view/visibility"
	"github.com/clusterhub/clusterhub/test/await"
)

// agentPrefix is the prefix of the names of agents.
const agentPrefix = "agents:"

var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme)

	// sharedEtcd serves all tests except those that compact or stop it; each has its own prefix.
	sharedEtcd *etcd.Server
	prefixes   atomic.Int64
)

func init() {
	clusterinstall.Install(scheme)
	clusterviewinstall.Install(scheme)
	viewinstall.Install(scheme)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	if err := visibilityapi.AddToScheme(scheme); err != nil {
		panic(err)
	}
}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "members")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		sharedEtcd, err = startEtcd(dir)
		if err != nil {
			panic(err)
		}
		defer sharedEtcd.Stop()
		return m.Run()
	}())
}

func startEtcd(dir string) (*etcd.Server, error) {
	options := etcd.NewOptions()
	options.DataDir, options.UnsafeNoFsync = dir, true
	return etcd.Start(context.Background(), *options)
}

// hub is an etcd with clusters and sets in it, and the RBAC rules of a front.
type hub struct {
	transformers   map[string]value.Transformer
	t              testing.TB
	config         *storagebackend.Config
	clusters, sets storage.Interface
	front          *front
	uids           int
}

func newHub(t testing.TB) *hub { return newHubOn(t, sharedEtcd) }

func newHubOn(t testing.TB, server *etcd.Server) *hub { return newEncryptedHubOn(t, server, nil) }

// newEncryptedHubOn returns a hub whose encryption configuration has transformers for resources.
func newEncryptedHubOn(t testing.TB, server *etcd.Server, transformers map[string]value.Transformer) *hub {
	t.Helper()
	if test, ok := t.(*testing.T); ok {
		test.Parallel() // Each has a prefix of its own, and most of the time is spent waiting.
	}
	h := &hub{t: t, front: newFront(t), transformers: transformers}
	h.config = storagebackend.NewDefaultConfig(fmt.Sprintf("/test-%d", prefixes.Add(1)), nil)
	h.config.Transport = server.Transport()
	h.config.Transport.TracerProvider = noopoteltrace.NewTracerProvider()
	h.config.CompactionInterval = 0
	h.clusters = h.store("managedclusters", codecs.LegacyCodec(v1.SchemeGroupVersion),
		func() runtime.Object { return &cluster.ManagedCluster{} },
		func() runtime.Object { return &cluster.ManagedClusterList{} })
	h.sets = h.store("managedclustersets", codecs.LegacyCodec(v1beta1.SchemeGroupVersion),
		func() runtime.Object { return &cluster.ManagedClusterSet{} },
		func() runtime.Object { return &cluster.ManagedClusterSetList{} })
	return h
}

func (h *hub) store(resource string, codec runtime.Codec, newFunc,
	newListFunc func() runtime.Object) storage.Interface {
	h.t.Helper()
	config := *h.configOf(cluster.Resource(resource))
	config.Codec = codec
	store, destroy, err := generic.NewRawStorage(&config, newFunc, newListFunc,
		position.FleetPrefix+"/"+resource)
	must(h.t, err)
	h.t.Cleanup(destroy)
	return store
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (h *hub) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{StorageConfig: h.configOf(resource)}, nil
}

func (h *hub) configOf(resource schema.GroupResource) *storagebackend.ConfigForResource {
	config := h.config.ForResource(resource)
	config.Transformer = h.transformers[resource.Resource]
	return config
}

// replica starts a registry of the members, as in one more replica of the API server.
func (h *hub) replica() *clustersetmember.REST {
	h.t.Helper()
	r, _ := h.stoppableReplica()
	return r
}

func (h *hub) stoppableReplica() (*clustersetmember.REST, func()) {
	h.t.Helper()
	r, _, stop := h.wholeReplica()
	return r, stop
}

// wholeReplica also has the sets.
func (h *hub) wholeReplica() (members *clustersetmember.REST, sets *filtered.REST, stop func()) {
	h.t.Helper()
	config, stopRules := h.rules()
	members, err := clustersetmember.New(config, codecs.LegacyCodec(v1alpha1.SchemeGroupVersion))
	must(h.t, err)
	sets = managedclusterset.New(config, codecs.LegacyCodec(clusterviewv1alpha1.SchemeGroupVersion))
	stop = func() {
		stopRules()
		sets.Destroy()
		members.Destroy()
	}
	h.t.Cleanup(stop)
	h.eventually("the replica is ready", func() (bool, string) {
		err := members.Ready()
		return err == nil, fmt.Sprint(err)
	})
	return members, sets, stop
}

// clusterReplica returns the clusters that a user may see, as in one more replica.
func (h *hub) clusterReplica() *filtered.REST {
	h.t.Helper()
	clusters := h.freshClusters()
	h.client(clusters, admin).list() // Its history begins with its first reader.
	return clusters
}

// freshClusters returns a replica without any reader yet.
func (h *hub) freshClusters() *filtered.REST {
	h.t.Helper()
	config, stopRules := h.rules()
	clusters := managedcluster.New(config, codecs.LegacyCodec(clusterviewv1.SchemeGroupVersion), managedcluster.Stored{})
	h.t.Cleanup(func() {
		stopRules()
		clusters.Destroy()
	})
	return clusters.REST
}

// rules returns the configuration from which a replica makes derived resources.
func (h *hub) rules() (config filtered.Config, stop func()) {
	h.t.Helper()
	fleet, err := derived.Fleet(h, codecs.LegacyCodec(visibilityapi.SchemeGroupVersion))
	must(h.t, err)
	front, ready := h.front.client()
	rules, err := visibility.NewRules(fleet, front, agentPrefix)
	must(h.t, err)
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		rules.Run(ctx)
	}()
	ready(h.t)
	return filtered.Config{Fleet: fleet, Rules: rules, Authorizer: authorizer.AuthorizerFunc(h.front.authorize)}, sync.OnceFunc(func() {
		cancel()
		<-done
		rules.Destroy()
	})
}

func (h *hub) cluster(name string, labels map[string]string,
	change ...func(*cluster.ManagedCluster)) *cluster.ManagedCluster {
	h.t.Helper()
	h.uids++
	c := &cluster.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(fmt.Sprintf("cluster-%d", h.uids)), Labels: labels,
		CreationTimestamp: metav1.Date(2026, 1, 1, 0, 0, h.uids, 0, time.UTC),
	}}
	for _, f := range change {
		f(c)
	}
	out := &cluster.ManagedCluster{}
	must(h.t, h.clusters.Create(h.t.Context(), position.FleetPrefix+"/managedclusters/"+name, c, out, 0))
	return out
}

func (h *hub) changeCluster(name string, change func(*cluster.ManagedCluster)) *cluster.ManagedCluster {
	h.t.Helper()
	out := &cluster.ManagedCluster{}
	must(h.t, h.clusters.GuaranteedUpdate(h.t.Context(), position.FleetPrefix+"/managedclusters/"+name, out, false, nil,
		storage.SimpleUpdate(func(in runtime.Object) (runtime.Object, error) {
			change(in.(*cluster.ManagedCluster))
			return in, nil
		}), nil))
	return out
}

func (h *hub) relabel(name string, labels map[string]string) *cluster.ManagedCluster {
	h.t.Helper()
	return h.changeCluster(name, func(c *cluster.ManagedCluster) { c.Labels = labels })
}

func (h *hub) deleteCluster(name string) *cluster.ManagedCluster {
	h.t.Helper()
	out := &cluster.ManagedCluster{}
	must(h.t, h.clusters.Delete(h.t.Context(), position.FleetPrefix+"/managedclusters/"+name, out, nil,
		storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}))
	return out
}

// set creates a set that selects by labels: nil selects nothing, an empty map everything.
func (h *hub) set(name string, matchLabels map[string]string) *cluster.ManagedClusterSet {
	h.t.Helper()
	h.uids++
	s := &cluster.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(fmt.Sprintf("set-%d", h.uids)),
		CreationTimestamp: metav1.Date(2026, 1, 1, 0, 0, h.uids, 0, time.UTC),
	}}
	selectBy(s, matchLabels)
	out := &cluster.ManagedClusterSet{}
	must(h.t, h.sets.Create(h.t.Context(), position.FleetPrefix+"/managedclustersets/"+name, s, out, 0))
	return out
}

func (h *hub) changeSet(name string, matchLabels map[string]string) *cluster.ManagedClusterSet {
	h.t.Helper()
	out := &cluster.ManagedClusterSet{}
	must(h.t, h.sets.GuaranteedUpdate(h.t.Context(), position.FleetPrefix+"/managedclustersets/"+name, out, false, nil,
		storage.SimpleUpdate(func(in runtime.Object) (runtime.Object, error) {
			selectBy(in.(*cluster.ManagedClusterSet), matchLabels)
			return in, nil
		}), nil))
	return out
}

func (h *hub) deleteSet(name string) *cluster.ManagedClusterSet {
	h.t.Helper()
	out := &cluster.ManagedClusterSet{}
	must(h.t, h.sets.Delete(h.t.Context(), position.FleetPrefix+"/managedclustersets/"+name, out, nil,
		storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}))
	return out
}

func selectBy(s *cluster.ManagedClusterSet, matchLabels map[string]string) {
	s.Spec.ClusterSelector = cluster.ManagedClusterSelector{SelectorType: cluster.LabelSelector}
	if matchLabels != nil {
		s.Spec.ClusterSelector.LabelSelector = &metav1.LabelSelector{MatchLabels: matchLabels}
	}
}

func (h *hub) eventually(what string, condition func() (done bool, state string)) {
	h.t.Helper()
	eventually(h.t, what, condition)
}

func eventually(t testing.TB, what string, condition func() (done bool, state string)) {
	t.Helper()
	var last string
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, await.Limit, true, func(context.Context) (bool,
		error) {
		done, state := condition()
		last = state
		return done, nil
	})
	if err != nil {
		t.Fatalf("%s: not within %s, but: %s", what, await.Limit, last)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var admin = &user.DefaultInfo{Name: "root", Groups: []string{user.SystemPrivilegedGroup}}

func someone(name string, groups ...string) user.Info {
	return &user.DefaultInfo{Name: name, Groups: append(groups, user.AllAuthenticated)}
}

func as(ctx context.Context, who user.Info) context.Context {
	return request.WithUser(ctx, who)
}

func labelled(pairs ...string) map[string]string {
	labels := map[string]string{}
	for _, p := range pairs {
		k, v, _ := strings.Cut(p, "=")
		labels[k] = v
	}
	return labels
}

// ownEtcd is for tests in which a revision must not change, or must be compacted.
func ownEtcd(t testing.TB) *etcd.Server {
	t.Helper()
	server, err := startEtcd(t.TempDir())
	must(t, err)
	t.Cleanup(server.Stop)
	return server
}

// awaitVisibility waits until the replicas know who may see what, after which they write nothing themselves.
func (h *hub) awaitVisibility(replicas ...*clustersetmember.REST) {
	h.t.Helper()
	for _, r := range replicas {
		h.client(r, someone("nobody")).list()
	}
}
