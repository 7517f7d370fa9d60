// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteravailability

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// fixture is a hub and an agent, whose clock may differ from the hub's.
type fixture struct {
	*testing.T
	*Reconciler
	c      client.Client
	clock  *clocktesting.FakePassiveClock
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
	ahead  time.Duration
	events *events.FakeRecorder
	writes int
	refuse error
	gets   int
}

func newFixture(t *testing.T, cluster *clusterv1.ManagedCluster) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clusterv1.AddToScheme, coordinationv1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, clock: clocktesting.NewFakePassiveClock(start)}
	f.c = fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, f.lease()).WithStatusSubresource(cluster).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				f.writes++
				if f.refuse != nil {
					return f.refuse
				}
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				f.writes++
				return c.Patch(ctx, obj, patch, opts...)
			},
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if _, ok := obj.(*coordinationv1.Lease); ok {
					f.gets++
				}
				return c.Get(ctx, key, obj, opts...)
			},
		}).Build()
	f.restart()
	return f
}

// restart starts a new process.
func (f *fixture) restart() {
	f.events = events.NewFakeRecorder(2 * eventsAtOnce)
	f.Reconciler = newReconciler(f.c, f.c, f.events, f.clock)
	f.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	f.Cleanup(f.queue.ShutDown)
	f.beats.Create(f.Context(), event.CreateEvent{Object: f.stored()}, f.queue)
}

func (f *fixture) lease() *coordinationv1.Lease {
	renewed := metav1.NewMicroTime(f.clock.Now().Add(f.ahead))
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "c1", Name: "managed-cluster-lease", Labels: map[string]string{registration.ClusterNameLabel: "c1"},
		},
		Spec: coordinationv1.LeaseSpec{RenewTime: &renewed},
	}
}

func (f *fixture) stored() *coordinationv1.Lease {
	f.Helper()
	lease := &coordinationv1.Lease{}
	if err := f.c.Get(f.Context(), client.ObjectKeyFromObject(f.lease()), lease); err != nil {
		f.Fatal(err)
	}
	return lease
}

// renew renews the Lease as the agent does. If told is set, the watch reports it.
func (f *fixture) renew(told bool) {
	f.Helper()
	lease := f.stored()
	before := lease.DeepCopy()
	lease.Spec.RenewTime = f.lease().Spec.RenewTime
	if err := f.c.Update(f.Context(), lease); err != nil {
		f.Fatal(err)
	}
	if told {
		f.beats.Update(f.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: lease}, f.queue)
	}
}

func (f *fixture) pass(d time.Duration) { f.clock.SetTime(f.clock.Now().Add(d)) }

func (f *fixture) look() time.Duration {
	f.Helper()
	result, err := f.Reconcile(f.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
	if err != nil {
		f.Fatal(err)
	}
	return result.RequeueAfter
}

func (f *fixture) cluster() *clusterv1.ManagedCluster {
	f.Helper()
	cluster := &clusterv1.ManagedCluster{}
	if err := f.c.Get(f.Context(), client.ObjectKey{Name: "c1"}, cluster); err != nil {
		f.Fatal(err)
	}
	return cluster
}

const (
	available   = "ManagedClusterConditionAvailable"
	synced      = "ManagedClusterConditionClockSynced"
	unreachable = "cluster.open-cluster-management.io/unreachable:NoSelect"
	unavailable = "cluster.open-cluster-management.io/unavailable:NoSelect"
	isTrue      = "True ManagedClusterAvailable"
	isUnknown   = "Unknown ManagedClusterLeaseUpdateStopped"
)

func joined(t *testing.T) *fixture {
	f := newFixture(t, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", Generation: 1}})
	f.set(registration.ConditionHubAccepted, metav1.ConditionTrue, registration.ReasonAccepted)
	f.set(available, metav1.ConditionTrue, "ManagedClusterAvailable")
	f.look()
	f.expect(available, isTrue, "")
	return f
}

func TestSilence_FivePeriodsMakeClusterUnknown(t *testing.T) {
	f := joined(t)
	f.pass(299 * time.Second)
	if wait := f.look(); wait != time.Second {
		t.Errorf("looks again in %s", wait)
	}
	f.expect(available, isTrue, "")
	f.pass(time.Second)
	f.look()
	f.look() // the write arrives as an event
	f.expect(available, isUnknown, unreachable)
	if c := meta.FindStatusCondition(f.cluster().Status.Conditions, available); c.Message != "Registration agent stopped updating its lease." {
		t.Errorf("message %q", c.Message)
	}
	f.expect("HubAcceptedManagedCluster", "True HubClusterAdminAccepted")
}

func TestSilence_FollowsLeaseDuration(t *testing.T) {
	f := joined(t)
	cluster := f.cluster()
	cluster.Spec.LeaseDurationSeconds = 10
	if err := f.c.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if wait := f.look(); wait != 50*time.Second {
		t.Errorf("looks again in %s", wait)
	}
}

func TestRenewals_RetainAvailabilityWithoutWrites(t *testing.T) {
	f := joined(t)
	f.pass(time.Minute)
	f.renew(true)
	f.look()
	if f.queue.Len() != 1 {
		t.Errorf("the first renewal asks for %d looks, want 1, for the clock", f.queue.Len())
	}
	writes, gets := f.writes, f.gets
	for range 1000 {
		f.pass(time.Minute)
		f.renew(true)
	}
	f.look()
	f.expect(available, isTrue, "")
	if f.queue.Len() != 1 || f.writes != writes || f.gets-gets > 1000 { // the agent reads it itself
		t.Errorf("%d looks asked for, %d writes", f.queue.Len(), f.writes-writes)
	}
}

// The agent's clock may be years off: only changes of the Lease count.
func TestClocks_SkewDoesNotAffectAvailability(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Hour * 24 * 365, time.Hour * 24 * 365} {
		f := joined(t)
		f.ahead = ahead
		for range 10 {
			f.pass(time.Minute)
			f.renew(true)
			f.look()
		}
		f.expect(available, isTrue)
		f.pass(5 * time.Minute)
		f.look()
		f.expect(available, isUnknown)
	}
}

func TestClocks_SkewIsReported(t *testing.T) {
	f := joined(t)
	f.expect(synced, "")
	f.renew(true)
	f.look()
	f.expect(synced, "") // the Lease has the time at which the process began
	step := func(ahead time.Duration, want string) {
		t.Helper()
		f.pass(time.Minute)
		f.ahead = ahead
		f.renew(true)
		f.look()
		f.expect(synced, want)
	}
	step(0, "True ManagedClusterClockSynced")
	step(299*time.Second, "True ManagedClusterClockSynced")
	step(300*time.Second, "False ManagedClusterClockOutOfSync")
	step(-time.Hour, "False ManagedClusterClockOutOfSync")
	step(time.Second, "True ManagedClusterClockSynced")
	step(time.Hour, "False ManagedClusterClockOutOfSync")
	cluster := f.cluster()
	cluster.Annotations = map[string]string{"registration.open-cluster-management.io/skip-clock-sync-check": "true"}
	if err := f.c.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	f.look()
	f.expect(synced, "")
	f.expect(available, isTrue)
}

// A stale watch, or a front that was away, must not make the fleet unreachable.
func TestSilence_IsCheckedBeyondWatch(t *testing.T) {
	f := joined(t)
	f.pass(5 * time.Minute)
	f.renew(false)
	if wait := f.look(); wait != 5*time.Minute {
		t.Errorf("looks again in %s", wait)
	}
	f.expect(available, isTrue, "")
}

func TestRestart_GivesAgentsTime(t *testing.T) {
	f := joined(t)
	f.pass(4 * time.Minute)
	f.restart()
	if wait := f.look(); wait != 5*time.Minute {
		t.Errorf("looks again in %s", wait)
	}
	f.pass(5 * time.Minute)
	f.look()
	f.expect(available, isUnknown)
	writes := f.writes
	f.look()
	f.restart()
	for range 3 {
		f.look()
		f.pass(5 * time.Minute)
	}
	if f.writes > writes+1 { // the taint
		t.Errorf("%d writes about a cluster that stays silent", f.writes-writes)
	}
}

// An agent that returns sets the condition before its renewal of the Lease is seen.
func TestReturn_IsNotReverted(t *testing.T) {
	f := joined(t)
	f.pass(5 * time.Minute)
	f.look()
	f.look()
	f.set(available, metav1.ConditionTrue, "ManagedClusterAvailable")
	f.look()
	f.look()
	f.expect(available, isTrue, "")
}

func TestClusters_DeletedOrNeverAcceptedHaveNoAvailability(t *testing.T) {
	f := newFixture(t, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", Generation: 1, Finalizers: []string{"x/y"}}})
	f.look()
	f.pass(time.Hour)
	f.look()
	f.expect(available, "")
	if err := f.c.Delete(t.Context(), f.cluster()); err != nil {
		t.Fatal(err)
	}
	writes := f.writes
	f.set(registration.ConditionHubAccepted, metav1.ConditionTrue, registration.ReasonAccepted)
	f.look()
	f.pass(time.Hour)
	f.look()
	if f.writes != writes {
		t.Errorf("%d writes to a cluster that goes", f.writes-writes)
	}
}

// TestJoin_CausesNoConflicts verifies that the taint is removed when the clock is checked: a write of the version that the first write has
// replaced would fail.
func TestJoin_CausesNoConflicts(t *testing.T) {
	f := newFixture(t, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", Generation: 1}})
	f.set(registration.ConditionHubAccepted, metav1.ConditionTrue, registration.ReasonAccepted)
	f.look()
	f.expect(available, "", unreachable)
	f.set(available, metav1.ConditionTrue, "ManagedClusterAvailable")
	f.pass(time.Second)
	f.renew(true)
	before := f.writes
	f.look()
	f.expect(synced, "True ManagedClusterClockSynced", unreachable)
	f.look() // the write arrives as an event
	f.expect(synced, "True ManagedClusterClockSynced", "")
	if writes := f.writes - before; writes != 2 {
		t.Errorf("%d writes, want 2", writes)
	}
}

func TestConflicts_AreRetriedByEvent(t *testing.T) {
	clusters := schema.GroupResource{Resource: "managedclusters"}
	for name, test := range map[string]struct {
		refusal error
		fails   bool
	}{
		"conflict":    {refusal: apierrors.NewConflict(clusters, "c1", errors.New("changed"))},
		"unavailable": {refusal: apierrors.NewServiceUnavailable("away"), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := joined(t)
			f.pass(5 * time.Minute)
			f.refuse = test.refusal
			_, err := f.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
			if (err != nil) != test.fails {
				t.Errorf("error %v, want one: %t", err, test.fails)
			}
			f.refuse = nil
			f.look()
			f.expect(available, isUnknown)
		})
	}
}
