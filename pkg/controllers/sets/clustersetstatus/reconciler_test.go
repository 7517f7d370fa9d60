// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetstatus

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
)

var (
	start   = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	earlier = metav1.NewTime(start.Add(-time.Hour))
)

// fixture is a reconciler, its server, and its number of members.
type fixture struct {
	*Reconciler
	t      *testing.T
	client client.Client
	clock  *clocktesting.FakePassiveClock
	counts map[string]int
	// writes are the times at which status writes were sent, to any set and by set; refuse is the response to them.
	writes   []time.Time
	writesOf map[string][]time.Time
	refuse   error
}

func newFixture(t *testing.T, sets ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1beta2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	f := &fixture{
		t: t, clock: clocktesting.NewFakePassiveClock(start),
		counts: map[string]int{}, writesOf: map[string][]time.Time{},
	}
	f.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(sets...).
		WithStatusSubresource(&clusterv1beta2.ManagedClusterSet{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: f.patch}).Build()
	f.Reconciler = newReconciler(f.client, func(set string) int { return f.counts[set] }, f.clock)
	return f
}

func (f *fixture) patch(ctx context.Context, c client.Client, subresource string, obj client.Object,
	patch client.Patch, opts ...client.SubResourcePatchOption) error {
	f.writes = append(f.writes, f.clock.Now())
	f.writesOf[obj.GetName()] = append(f.writesOf[obj.GetName()], f.clock.Now())
	if f.refuse != nil {
		return f.refuse
	}
	return c.SubResource(subresource).Patch(ctx, obj, patch, opts...)
}

func (f *fixture) advance(d time.Duration) { f.clock.SetTime(f.clock.Now().Add(d)) }

func (f *fixture) reconcile(set string) time.Duration {
	f.t.Helper()
	result, err := f.Reconcile(f.t.Context(), request(set))
	if err != nil {
		f.t.Fatal(err)
	}
	return result.RequeueAfter
}

// settle reconciles a set as often as the reconciler requests.
func (f *fixture) settle(set string) {
	f.t.Helper()
	for wait := f.reconcile(set); wait > 0; wait = f.reconcile(set) {
		f.advance(wait)
	}
}

func (f *fixture) conditions(set string) []metav1.Condition {
	f.t.Helper()
	obj := &clusterv1beta2.ManagedClusterSet{}
	if err := f.client.Get(f.t.Context(), client.ObjectKey{Name: set}, obj); err != nil {
		f.t.Fatal(err)
	}
	for i := range obj.Status.Conditions {
		c := &obj.Status.Conditions[i]
		c.LastTransitionTime.Time = c.LastTransitionTime.UTC()
	}
	return obj.Status.Conditions
}

func request(set string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: set}}
}

func newSet(name string, generation int64, conditions ...metav1.Condition) *clusterv1beta2.ManagedClusterSet {
	return &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation},
		Status:     clusterv1beta2.ManagedClusterSetStatus{Conditions: conditions},
	}
}

func empty(generation int64, at metav1.Time) metav1.Condition {
	return metav1.Condition{
		Type: "ClusterSetEmpty", Status: "True", Reason: "NoClusterMatched", Message: "No ManagedCluster selected",
		ObservedGeneration: generation, LastTransitionTime: at,
	}
}

func selected(n int, generation int64, at metav1.Time) metav1.Condition {
	return metav1.Condition{
		Type: "ClusterSetEmpty", Status: "False", Reason: "ClustersSelected",
		Message:            fmt.Sprintf("%d ManagedClusters selected", n),
		ObservedGeneration: generation, LastTransitionTime: at,
	}
}

func TestReconcile_WritesUpstreamCondition(t *testing.T) {
	written := metav1.NewTime(start.Add(Interval))
	foreign := metav1.Condition{
		Type: "Other", Status: "True", Reason: "Theirs", LastTransitionTime: earlier, ObservedGeneration: 1,
	}
	for name, test := range map[string]struct {
		set    *clusterv1beta2.ManagedClusterSet
		count  int
		want   []metav1.Condition
		writes int
	}{
		"a new set without clusters": {
			set: newSet("s", 1), want: []metav1.Condition{empty(1, written)}, writes: 1,
		},
		"a new set with one cluster": {
			set: newSet("s", 1), count: 1, want: []metav1.Condition{selected(1, 1, written)}, writes: 1,
		},
		"a set that gains its first clusters": {
			set: newSet("s", 1, empty(1, earlier)), count: 12,
			want: []metav1.Condition{selected(12, 1, written)}, writes: 1,
		},
		"a set that loses its last cluster": {
			set: newSet("s", 1, selected(1, 1, earlier)), want: []metav1.Condition{empty(1, written)}, writes: 1,
		},
		"another number is no transition": {
			set: newSet("s", 1, selected(3, 1, earlier)), count: 4,
			want: []metav1.Condition{selected(4, 1, earlier)}, writes: 1,
		},
		"a new generation with the same number is observed": {
			set: newSet("s", 2, selected(3, 1, earlier)), count: 3,
			want: []metav1.Condition{selected(3, 2, earlier)}, writes: 1,
		},
		"nothing has changed": {
			set: newSet("s", 2, selected(3, 2, earlier)), count: 3,
			want: []metav1.Condition{selected(3, 2, earlier)},
		},
		"the conditions of others stay": {
			set: newSet("s", 1, foreign, empty(1, earlier)), count: 2,
			want: []metav1.Condition{foreign, selected(2, 1, written)}, writes: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.set)
			f.counts["s"] = test.count
			f.settle("s")
			if diff := cmp.Diff(test.want, f.conditions("s")); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			f.advance(time.Minute)
			f.settle("s")
			if len(f.writes) != test.writes {
				t.Errorf("%d writes, want %d", len(f.writes), test.writes)
			}
		})
	}
}

func TestReconcile_IgnoresDeletingSet(t *testing.T) {
	set := newSet("s", 1)
	set.Finalizers = []string{"example.com/hold"}
	f := newFixture(t, set)
	if err := f.client.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	f.settle("s")
	f.settle("gone")
	if len(f.writes) != 0 || len(f.paces) != 0 {
		t.Errorf("%d writes and %d sets remembered, want none", len(f.writes), len(f.paces))
	}
}

func TestReconcile_ForgetsDeletedSet(t *testing.T) {
	set := newSet("s", 1)
	f := newFixture(t, set)
	if wait := f.reconcile("s"); wait != Interval {
		t.Fatalf("the write waits for %s, want %s", wait, Interval)
	}
	if err := f.client.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	f.settle("s")
	if len(f.writes) != 0 || len(f.paces) != 0 {
		t.Errorf("%d writes and %d sets remembered, want none", len(f.writes), len(f.paces))
	}
}

// A refused write is an error, which the queue retries with an increasing delay; events of the set in between do not make that faster than one
// write per Spacing.
func TestReconcile_RetriesAfterServerOutage(t *testing.T) {
	f := newFixture(t, newSet("s", 1))
	f.refuse = apierrors.NewServiceUnavailable("the server is away")
	f.advance(f.reconcile("s"))
	if _, err := f.Reconcile(t.Context(), request("s")); !errors.Is(err, f.refuse) {
		t.Fatalf("error %v, want %v", err, f.refuse)
	}
	if wait := f.reconcile("s"); wait != Spacing {
		t.Errorf("the next write waits for %s, want %s", wait, Spacing)
	}
	f.refuse = nil
	f.advance(Interval)
	f.settle("s")
	if len(f.writes) != 2 || len(f.conditions("s")) != 1 {
		t.Errorf("%d writes and %d conditions, want 2 and 1", len(f.writes), len(f.conditions("s")))
	}
}

func TestReconcile_ConflictWaitsForEvent(t *testing.T) {
	sets := schema.GroupResource{Resource: "managedclustersets"}
	for name, refusal := range map[string]error{
		"conflict":  apierrors.NewConflict(sets, "s", errors.New("changed")),
		"not found": apierrors.NewNotFound(sets, "s"),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newSet("s", 1))
			f.refuse = refusal
			f.settle("s")
			if len(f.writes) != 1 {
				t.Errorf("%d writes, want 1", len(f.writes))
			}
		})
	}
}

// The lock preserves a condition that was written after the set was read.
func TestReconcile_DoesNotOverwriteUnobserved(t *testing.T) {
	f := newFixture(t, newSet("s", 1))
	stale := &clusterv1beta2.ManagedClusterSet{}
	if err := f.client.Get(t.Context(), client.ObjectKey{Name: "s"}, stale); err != nil {
		t.Fatal(err)
	}
	current := stale.DeepCopy()
	current.Status.Conditions = []metav1.Condition{{Type: "Other", Status: "True", Reason: "Theirs"}}
	if err := f.client.Status().Update(t.Context(), current); err != nil {
		t.Fatal(err)
	}
	f.Reconciler.client = interceptor.NewClient(f.client.(client.WithWatch), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, obj client.Object,
			_ ...client.GetOption) error {
			stale.DeepCopyInto(obj.(*clusterv1beta2.ManagedClusterSet))
			return nil
		},
	})
	f.settle("s")
	if got := f.conditions("s"); len(f.writes) != 1 || len(got) != 1 || got[0].Type != "Other" {
		t.Errorf("%d writes and conditions %v, want one refused write", len(f.writes), got)
	}
}
