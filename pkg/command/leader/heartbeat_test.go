// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/clusterhub/clusterhub/pkg/command"
)

// TestHeartbeat_MaintainsLease: the heartbeat creates, renews and releases the Lease, takes it over from a process that was killed, and
// continues after the API has not responded for a long time.
func TestHeartbeat_MaintainsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var away atomic.Bool
		var requests atomic.Int32
		client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			requests.Add(1)
			return away.Load(), nil, errors.New("away")
		})
		lease := func() coordinationv1.LeaseSpec {
			lease, err := client.CoordinationV1().Leases("n").Get(t.Context(), "l", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return lease.Spec
		}
		want := func(holder string, age time.Duration) {
			t.Helper()
			if got := lease(); *got.HolderIdentity != holder || time.Since(got.RenewTime.Time) != age {
				t.Errorf("%s renewed the Lease %s ago, want %s, %s ago", *got.HolderIdentity, time.Since(got.RenewTime.Time), holder, age)
			}
		}
		start := func(identity string) (end func()) {
			ctx, cancel := context.WithCancel(t.Context())
			h := &heartbeat{election: command.NewLeaderElection("l", "n"), lock: &heldLock{Interface: &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Namespace: "n", Name: "l"}, Client: client.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: identity}}}}
			ended := make(chan error)
			go func() { ended <- h.Start(ctx) }()
			synctest.Wait()
			return func() {
				t.Helper()
				cancel()
				if err := <-ended; err != nil {
					t.Errorf("%s: %v", identity, err)
				}
			}
		}
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}

		// The metric that alerts use.
		gauge := func() (value float64) {
			families, err := metrics.Registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				for _, m := range f.GetMetric() {
					if f.GetName() == "leader_election_master_status" && m.GetLabel()[0].GetValue() == "l" {
						return m.GetGauge().GetValue()
					}
				}
			}
			return -1
		}

		end := start("first")
		want("first", 0)
		if got := gauge(); got != 1 {
			t.Errorf("the metric of who leads is %v, want 1", got)
		}
		end()
		if got := gauge(); got != 0 {
			t.Errorf("the metric of who leads is %v after the end, want 0", got)
		}
		// The next process is killed, and does not renew any more.
		killed := lease()
		killed.HolderIdentity = new("killed")
		if _, err := client.CoordinationV1().Leases("n").Update(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}, Spec: killed},
			metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		end = start("last")
		want("last", 0)
		away.Store(true)
		pass(time.Minute)
		away.Store(false)
		pass(2 * time.Second)
		want("last", 0)
		requests.Store(0)
		pass(10 * time.Second)
		if got := requests.Load(); got != 5 {
			t.Errorf("%d requests in 10 s, want a write each 2 s", got)
		}
		end()
		if got := lease(); *got.HolderIdentity != "" || *got.LeaseTransitions != 1 {
			t.Errorf("the Lease is held by %q after %d transitions, want nobody after 1", *got.HolderIdentity, *got.LeaseTransitions)
		}
	})
}
