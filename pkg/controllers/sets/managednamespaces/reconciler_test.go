// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managednamespaces

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
)

const clusterSetLabel = "cluster.open-cluster-management.io/clusterset"

// fixture is a hub whose changes the reconciler receives as events.
type fixture struct {
	*testing.T
	*Reconciler
	client.Client
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
	writes int
	// refuse, if set, is the response to the next write.
	refuse error
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clusterv1.AddToScheme, clusterv1beta2.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t}
	f.Client = fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&clusterv1.ManagedCluster{}, &clusterv1beta2.ManagedClusterSet{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string,
			obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			f.writes++
			if err := f.refuse; err != nil {
				f.refuse = nil
				return err
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		}}).Build()
	f.Reconciler = newReconciler(f.Client)
	f.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(f.queue.ShutDown)
	return f
}

// asks returns a set with the given selector, or with its label if that is nil.
func asks(name string, selector *metav1.LabelSelector, namespaces ...string) *clusterv1beta2.ManagedClusterSet {
	s := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Spec.ClusterSelector.SelectorType = clusterv1beta2.ExclusiveClusterSetLabel
	if selector != nil {
		s.Spec.ClusterSelector.SelectorType, s.Spec.ClusterSelector.LabelSelector = clusterv1beta2.LabelSelector, selector
	}
	for _, namespace := range namespaces {
		s.Spec.ManagedNamespaces = append(s.Spec.ManagedNamespaces, clusterv1beta2.ManagedNamespaceConfig{Name: namespace})
	}
	return s
}

func in(set string, name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterSetLabel: set}}}
}

func (f *fixture) create(objects ...client.Object) {
	f.Helper()
	for _, obj := range objects {
		if err := f.Create(f.Context(), obj); err != nil {
			f.Fatal(err)
		}
		e := event.CreateEvent{Object: obj.DeepCopyObject().(client.Object)}
		if _, ok := obj.(*clusterv1.ManagedCluster); ok {
			f.clusters().Create(f.Context(), e, f.queue)
		} else {
			f.sets().Create(f.Context(), e, f.queue)
		}
	}
}

// told delivers a change of an object.
func (f *fixture) told(before, after client.Object) {
	e := event.UpdateEvent{ObjectOld: before, ObjectNew: after}
	if _, ok := after.(*clusterv1.ManagedCluster); ok {
		f.clusters().Update(f.Context(), e, f.queue)
		return
	}
	f.sets().Update(f.Context(), e, f.queue)
}

// change changes a cluster or a set, with its status.
func change[T client.Object](f *fixture, obj T, do func(T)) {
	f.Helper()
	if err := f.Get(f.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		f.Fatal(err)
	}
	before, after := obj.DeepCopyObject().(client.Object), obj.DeepCopyObject().(T)
	do(after)
	status := after.DeepCopyObject().(client.Object)
	if err := f.Update(f.Context(), after); err != nil {
		f.Fatal(err)
	}
	status.SetResourceVersion(after.GetResourceVersion())
	if err := f.Status().Update(f.Context(), status); err != nil {
		f.Fatal(err)
	}
	f.told(before, status)
}

func (f *fixture) remove(set string) {
	f.Helper()
	s := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: set}}
	if err := f.Delete(f.Context(), s); err != nil {
		f.Fatal(err)
	}
	f.sets().Delete(f.Context(), event.DeleteEvent{Object: s}, f.queue)
}

// run reconciles all queued clusters, and those that are queued by that, and returns their names.
func (f *fixture) run() (names []string) {
	f.Helper()
	for f.queue.Len() > 0 {
		if len(names) > 100 {
			f.Fatalf("it does not come to rest: %v", names)
		}
		request, _ := f.queue.Get()
		names = append(names, request.Name)
		before := f.cluster(request.Name)
		result, err := f.Reconcile(f.Context(), request)
		if err != nil {
			f.Fatal(err)
		}
		f.queue.Done(request)
		f.told(before, f.cluster(request.Name))
		if result.RequeueAfter > 0 {
			f.queue.Add(request)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (f *fixture) cluster(name string) *clusterv1.ManagedCluster {
	f.Helper()
	c := &clusterv1.ManagedCluster{}
	if err := f.Get(f.Context(), client.ObjectKey{Name: name}, c); err != nil {
		f.Fatal(err)
	}
	return c
}

// expect compares the entries of a cluster, "set/namespace" in order.
func (f *fixture) expect(name string, want ...string) {
	f.Helper()
	f.run()
	var got []string
	for _, n := range f.cluster(name).Status.ManagedNamespaces {
		got = append(got, n.ClusterSet+"/"+n.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%s (-want +got): %s", name, diff)
	}
}

func TestReconcile_ClusterGetsNamespacesOfAllSets(t *testing.T) {
	f := newFixture(t)
	everything := &metav1.LabelSelector{}
	f.create(in("dev", "c1"), asks("dev", nil, "b", "a"), asks("prod", nil, "c"), asks("global", everything, "a", "z"),
		asks("silent", everything), asks("none", &metav1.LabelSelector{MatchLabels: map[string]string{"no": "one"}}, "d"),
		in("prod", "c2"), in("other", "c3"))
	f.expect("c1", "dev/a", "dev/b", "global/a", "global/z")
	f.expect("c2", "global/a", "global/z", "prod/c")
	f.expect("c3", "global/a", "global/z")

	change(f, in("", "c1"), func(c *clusterv1.ManagedCluster) { c.Labels[clusterSetLabel] = "prod" })
	f.expect("c1", "global/a", "global/z", "prod/c")
	change(f, asks("prod", nil), func(s *clusterv1beta2.ManagedClusterSet) { s.Spec.ManagedNamespaces = nil })
	f.expect("c1", "global/a", "global/z")
	change(f, asks("silent", nil), func(s *clusterv1beta2.ManagedClusterSet) {
		s.Spec.ManagedNamespaces = []clusterv1beta2.ManagedNamespaceConfig{{Name: "now"}}
	})
	f.expect("c1", "global/a", "global/z", "silent/now")
	change(f, asks("global", nil), func(s *clusterv1beta2.ManagedClusterSet) {
		s.Spec.ClusterSelector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{clusterSetLabel: "other"}}
	})
	f.expect("c1", "silent/now")
	f.expect("c3", "global/a", "global/z", "silent/now")
	f.remove("silent")
	f.expect("c1")
	f.expect("c3", "global/a", "global/z")
}

func TestReconcile_DeletingSetRequestsNothing(t *testing.T) {
	f := newFixture(t)
	set := asks("dev", nil, "a")
	set.Finalizers = []string{"example.com/wait"}
	f.create(in("dev", "c1"), set)
	f.expect("c1", "dev/a")
	before := set.DeepCopy()
	now := metav1.Now()
	set.DeletionTimestamp = &now
	f.told(before, set)
	f.expect("c1")
}

// What the agent has reported of a namespace stays until no set requests the namespace any more.
func TestReconcile_ConditionsArePreserved(t *testing.T) {
	f := newFixture(t)
	f.create(in("dev", "c1"), asks("dev", nil, "a", "b"))
	f.run()
	change(f, in("", "c1"), func(c *clusterv1.ManagedCluster) {
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: "Other", Status: "True", Reason: "Other"})
		for i := range c.Status.ManagedNamespaces {
			meta.SetStatusCondition(&c.Status.ManagedNamespaces[i].Conditions, metav1.Condition{
				Type: "NamespaceAvailable", Status: "True", Reason: "NamespaceApplied", Message: c.Status.ManagedNamespaces[i].Name})
		}
	})
	if looked := f.run(); len(looked) > 0 {
		t.Errorf("what the agent reports had %v looked at", looked)
	}
	change(f, asks("dev", nil), func(s *clusterv1beta2.ManagedClusterSet) {
		s.Spec.ManagedNamespaces = asks("", nil, "0", "b", "c").Spec.ManagedNamespaces
	})
	f.expect("c1", "dev/0", "dev/b", "dev/c")
	c := f.cluster("c1")
	for i, want := range []int{0, 1, 0} {
		n := c.Status.ManagedNamespaces[i]
		if len(n.Conditions) != want || (want == 1 && n.Conditions[0].Message != n.Name) {
			t.Errorf("%s has %+v, want %d", n.Name, n.Conditions, want)
		}
	}
	if len(c.Status.Conditions) != 1 {
		t.Errorf("the cluster's own conditions are %+v", c.Status.Conditions)
	}
}

// An agent may write all of its status.
func TestReconcile_RepairsChangesByAgent(t *testing.T) {
	for name, tamper := range map[string]func([]clusterv1.ClusterSetManagedNamespaceConfig) []clusterv1.ClusterSetManagedNamespaceConfig{
		"none": func([]clusterv1.ClusterSetManagedNamespaceConfig) []clusterv1.ClusterSetManagedNamespaceConfig {
			return nil
		},
		"more": func(all []clusterv1.ClusterSetManagedNamespaceConfig) []clusterv1.ClusterSetManagedNamespaceConfig {
			return append(all, clusterv1.ClusterSetManagedNamespaceConfig{ClusterSet: "prod", Name: "x"})
		},
		"others": func(all []clusterv1.ClusterSetManagedNamespaceConfig) []clusterv1.ClusterSetManagedNamespaceConfig {
			all[0].ClusterSet = "prod"
			return all
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.create(in("dev", "c1"), asks("dev", nil, "a", "b"))
			f.run()
			change(f, in("", "c1"), func(c *clusterv1.ManagedCluster) {
				c.Status.ManagedNamespaces = tamper(c.Status.ManagedNamespaces)
			})
			f.expect("c1", "dev/a", "dev/b")
		})
	}
}

func TestReconcile_CostFollowsChange(t *testing.T) {
	const fleet, sets = 10_000, 100
	r := newReconciler(nil)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	looked := func() int {
		n := q.Len()
		for range n {
			request, _ := q.Get()
			q.Done(request)
		}
		return n
	}
	set := func(i int) string { return fmt.Sprintf("s%d", i%sets) }
	for i := range fleet {
		r.clusters().Create(t.Context(), event.CreateEvent{Object: in(set(i), fmt.Sprintf("c%d", i))}, q)
	}
	for i := range sets {
		r.sets().Create(t.Context(), event.CreateEvent{Object: asks(set(i), nil, "a")}, q)
	}
	if n := looked(); n != fleet {
		t.Fatalf("%d clusters were looked at at first", n)
	}
	one, two := asks(set(1), nil, "a"), asks(set(1), nil, "a", "b")
	counted := one.DeepCopy()
	counted.Status.Conditions = []metav1.Condition{{Type: "ClusterSetEmpty"}}
	c1, moved, reported := in(set(1), "c1"), in(set(2), "c1"), in(set(2), "c1")
	reported.Status.Version.Kubernetes = "v2"
	for _, step := range []struct {
		what string
		do   func()
		want int
	}{
		{"the status of a set", func() { r.sets().Update(t.Context(), event.UpdateEvent{ObjectOld: one, ObjectNew: counted}, q) }, 0},
		{"a namespace", func() { r.sets().Update(t.Context(), event.UpdateEvent{ObjectOld: one, ObjectNew: two}, q) }, fleet / sets},
		{"a label", func() { r.clusters().Update(t.Context(), event.UpdateEvent{ObjectOld: c1, ObjectNew: moved}, q) }, 1},
		{"a status", func() { r.clusters().Update(t.Context(), event.UpdateEvent{ObjectOld: moved, ObjectNew: reported}, q) }, 0},
		{"a set that asks for nothing", func() {
			r.sets().Create(t.Context(), event.CreateEvent{Object: asks("all", &metav1.LabelSelector{})}, q)
		}, 0},
		{"a set that goes", func() { r.sets().Delete(t.Context(), event.DeleteEvent{Object: two}, q) }, fleet/sets - 1},
	} {
		step.do()
		if n := looked(); n != step.want {
			t.Errorf("%s: %d clusters were looked at, want %d", step.what, n, step.want)
		}
	}
	for i := range fleet {
		r.clusters().Delete(t.Context(), event.DeleteEvent{Object: in("", fmt.Sprintf("c%d", i))}, q)
	}
	if n := len(r.asked.setsOf) + len(r.asked.clustersOf); n > 0 {
		t.Errorf("%d entries are left of what is gone", n)
	}
}

func TestReconcile_ConflictLosesNothing(t *testing.T) {
	f := newFixture(t)
	f.create(in("dev", "c1"), asks("dev", nil, "a"))
	f.refuse = apierrors.NewConflict(schema.GroupResource{Resource: "managedclusters"}, "c1", errors.New("changed"))
	f.expect("c1", "dev/a")
	if f.writes != 2 {
		t.Errorf("%d writes, want 2", f.writes)
	}
	enqueue(f.queue, "c1")
	f.run()
	if f.writes != 2 {
		t.Errorf("what is right was written again")
	}
}

// The lock preserves the agent's conditions: without it, this write would remove them.
func TestReconcile_WritesOnlyReadVersion(t *testing.T) {
	f := newFixture(t)
	f.create(in("dev", "c1"), asks("dev", nil, "a"))
	f.run()
	stale := f.cluster("c1")
	change(f, in("", "c1"), func(c *clusterv1.ManagedCluster) {
		c.Status.ManagedNamespaces[0].Conditions = []metav1.Condition{{Type: "NamespaceAvailable", Status: "True", Reason: "NamespaceApplied"}}
	})
	behind := interceptor.NewClient(f.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			stale.DeepCopyInto(obj.(*clusterv1.ManagedCluster))
			return nil
		}})
	f.client = behind
	change(f, asks("dev", nil), func(s *clusterv1beta2.ManagedClusterSet) {
		s.Spec.ManagedNamespaces = asks("", nil, "a", "b").Spec.ManagedNamespaces
	})
	request, _ := f.queue.Get()
	result, err := f.Reconcile(t.Context(), request)
	f.queue.Done(request)
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("got %+v, %v, want another try", result, err)
	}
	f.client = f.Client
	enqueue(f.queue, "c1")
	f.expect("c1", "dev/a", "dev/b")
	if n := f.cluster("c1").Status.ManagedNamespaces[0]; len(n.Conditions) != 1 {
		t.Errorf("the agent's condition is lost: %+v", n)
	}
}

func TestReconcile_IgnoresDeletingCluster(t *testing.T) {
	f := newFixture(t)
	c := in("dev", "c1")
	c.Finalizers = []string{"example.com/wait"}
	f.create(c)
	f.run()
	if err := f.Delete(t.Context(), in("dev", "c1")); err != nil {
		t.Fatal(err)
	}
	f.create(asks("dev", nil, "a"))
	f.expect("c1")
	if f.writes != 0 {
		t.Errorf("%d writes", f.writes)
	}
}
