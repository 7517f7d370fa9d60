// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

var errKilled = errors.New("the process is killed")

// fixture is a hub, and a process that may be killed after any write.
type fixture struct {
	*testing.T
	client client.Client
	config *Config

	lock sync.Mutex
	// writes are the writes in the order of time.
	writes []string
	// killAfter is the number of writes after which the process dies; -1 is never.
	killAfter int
	dead      bool

	process *Reconciler
	events  *events.FakeRecorder
}

// testConfig has a definition of each kind. Upstream's own cases have the names of these purposes.
const testConfig = `
scheduler:
  purposeMappings:
    exclusive: {template: {spec: {profile: p, tenancy: Exclusive}}}
    shared: {tenancyCount: 2, template: {metadata: {generateName: shared-twice-}, spec: {profile: p, tenancy: Shared}}}
    unlimited: {template: {spec: {profile: p, tenancy: Shared}}}
`

func newFixture(t *testing.T, config string, objs ...client.Object) *fixture {
	t.Helper()
	f := &fixture{T: t, killAfter: -1, config: mustParse(t, config), events: events.NewFakeRecorder(1000)}
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).
		WithStatusSubresource(&v1alpha1.ClusterRequest{}, &v1alpha1.Cluster{}).WithInterceptorFuncs(f.interceptors())
	for index, extract := range clusterIndexers {
		builder.WithIndex(&v1alpha1.Cluster{}, index, extract)
	}
	for index, extract := range requestIndexers {
		builder.WithIndex(&v1alpha1.ClusterRequest{}, index, extract)
	}
	f.client = builder.Build()
	f.restart()
	return f
}

func mustParse(t *testing.T, config string) *Config {
	t.Helper()
	parsed, err := parse([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// restart starts a new process, which knows only what is written.
func (f *fixture) restart() {
	f.dead, f.killAfter = false, -1
	f.process = newReconciler(f.client, f.client, func() *Config { return f.config }, f.events)
	f.process.pick = func(n int) int { return n - 1 }
}

// write does a write, unless the process is dead. The process dies right after its last write.
func (f *fixture) write(verb string, obj client.Object, do func() error) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.dead {
		return errKilled
	}
	what := fmt.Sprintf("%s %T %s", verb, obj, obj.GetName())
	err := do()
	if err != nil {
		return err
	}
	f.writes = append(f.writes, what)
	if f.killAfter > 0 {
		f.killAfter--
		if f.killAfter == 0 {
			f.dead = true
			return errKilled
		}
	}
	return nil
}

func (f *fixture) interceptors() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return f.write("create", obj, func() error {
				if obj.GetUID() == "" {
					obj.SetUID(types.UID(fmt.Sprintf("uid-%d", rand.Int())))
				}
				return c.Create(ctx, obj, opts...)
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return f.write("delete", obj, func() error { return c.Delete(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return f.write("patch", obj, func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return f.write("patch "+sub, obj, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	}
}

// newRequest returns the request "namespace/name" with the UID uid-of-name.
func newRequest(key, purpose string) *v1alpha1.ClusterRequest {
	namespace, name, _ := strings.Cut(key, "/")
	return &v1alpha1.ClusterRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name), Generation: 1},
		Spec:       v1alpha1.ClusterRequestSpec{Purpose: purpose},
	}
}

// newCluster returns a cluster that the scheduler did not create, held by requests.
func newCluster(key, purpose string, tenancy v1alpha1.Tenancy, holders ...string) *v1alpha1.Cluster {
	namespace, name, _ := strings.Cut(key, "/")
	c := &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name)},
		Spec:       v1alpha1.ClusterSpec{Profile: "p", Tenancy: tenancy, Purposes: []string{purpose}},
	}
	for _, holder := range holders {
		c.Finalizers = append(c.Finalizers, v1alpha1.RequestFinalizerOnClusterPrefix+"uid-of-"+holder)
	}
	return c
}

// settle reconciles until nothing more is written.
func (f *fixture) settle(keys ...string) {
	f.Helper()
	for _, key := range keys {
		namespace, name, _ := strings.Cut(key, "/")
		for i := 0; ; i++ {
			before := len(f.writes)
			_, err := f.process.Reconcile(f.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
			if err != nil {
				f.Fatal(err)
			}
			if len(f.writes) == before {
				break
			}
			if i > 10 {
				f.Fatalf("does not settle: %q", f.writes)
			}
		}
	}
}

// ask creates requests, "namespace/name", and settles them.
func (f *fixture) ask(purpose string, keys ...string) {
	f.Helper()
	for _, key := range keys {
		f.create(newRequest(key, purpose))
		f.settle(key)
	}
}

func (f *fixture) create(obj client.Object) {
	f.Helper()
	if err := f.client.Create(f.Context(), obj); err != nil {
		f.Fatal(err)
	}
}

func get[T any, P interface {
	*T
	client.Object
}](f *fixture, key string) P {
	f.Helper()
	obj := P(new(T))
	namespace, name, _ := strings.Cut(key, "/")
	if err := f.client.Get(f.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
		f.Fatal(err)
	}
	return obj
}

func (f *fixture) request(key string) *v1alpha1.ClusterRequest {
	return get[v1alpha1.ClusterRequest](f, key)
}
func (f *fixture) cluster(key string) *v1alpha1.Cluster { return get[v1alpha1.Cluster](f, key) }

// change changes a request as a user would, and its status as an approver would.
func (f *fixture) change(key string, change func(*v1alpha1.ClusterRequest)) {
	f.Helper()
	request := f.request(key)
	change(request)
	status := request.Status
	if err := f.client.Update(f.Context(), request); err != nil {
		f.Fatal(err)
	}
	request.Status = status
	if err := f.client.Status().Update(f.Context(), request); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) changeCluster(key string, change func(*v1alpha1.Cluster)) {
	f.Helper()
	cluster := f.cluster(key)
	change(cluster)
	if err := f.client.Update(f.Context(), cluster); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) delete(obj client.Object) {
	f.Helper()
	if err := f.client.Delete(f.Context(), obj); err != nil {
		f.Fatal(err)
	}
}

// answer returns the phase, the cluster, and the reason.
func (f *fixture) answer(key string) string {
	f.Helper()
	request := f.request(key)
	cluster, reason := "-", "-"
	if c := request.Status.Cluster; c != nil {
		cluster = c.NamespacedName().String()
	}
	if c := meta.FindStatusCondition(request.Status.Conditions, ConditionGranted); c != nil {
		reason = c.Reason
	}
	return fmt.Sprintf("%s %s %s", request.Status.Phase, cluster, reason)
}

func (f *fixture) wantAnswer(key, want string) {
	f.Helper()
	if got := f.answer(key); got != want {
		f.Errorf("%s: %q, want %q; %v", key, got, want, f.request(key).Status.Conditions)
	}
}

// clusters lists all clusters with the names of the requests that have them, and whether they are being deleted.
func (f *fixture) clusters() (all []string) {
	f.Helper()
	list := &v1alpha1.ClusterList{}
	if err := f.client.List(f.Context(), list); err != nil {
		f.Fatal(err)
	}
	for i := range list.Items {
		c := &list.Items[i]
		text := client.ObjectKeyFromObject(c).String()
		holders := c.GetRequestUIDs().UnsortedList()
		slices.Sort(holders)
		for _, uid := range holders {
			text += " " + strings.TrimPrefix(uid, "uid-of-")
		}
		if c.DeletionTimestamp != nil {
			text += " deleted"
		}
		all = append(all, text)
	}
	return all
}

func (f *fixture) wantClusters(want ...string) {
	f.Helper()
	if got := f.clusters(); !slices.Equal(got, want) {
		f.Errorf("the clusters are %q, want %q", got, want)
	}
}
