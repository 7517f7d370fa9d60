// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/clusterhub/clusterhub/pkg/command"
)

// cutOff is a lock that cannot reach the API from some moment on, until the first read has timed out.
type cutOff struct {
	resourcelock.Interface
	from atomic.Bool
}

func (c *cutOff) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if c.from.Swap(false) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	}
	return c.Interface.Get(ctx)
}

func (c *cutOff) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if c.from.Load() {
		return context.DeadlineExceeded
	}
	return c.Interface.Update(ctx, record)
}

// TestHeldLock_DoesNotReleaseLeaseOfOthers runs client-go's elector. A process that cannot reach the API until another process leads stops and
// does not write the Lease. A process that stops while it leads releases the Lease.
func TestHeldLock_DoesNotReleaseLeaseOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		newLock := func(identity string) resourcelock.Interface {
			return &heldLock{Interface: &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: "n", Name: "l"}, Client: client.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: identity}}}
		}
		// run leads until the context ends or the Lease is lost.
		run := func(ctx context.Context, lock resourcelock.Interface) (leads, ended chan struct{}) {
			leads, ended = make(chan struct{}), make(chan struct{})
			elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{Lock: lock, LeaseDuration: 15 * time.Second,
				RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true, Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { close(leads) }, OnStoppedLeading: func() {}}})
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				elector.Run(ctx)
				close(ended)
			}()
			return leads, ended
		}
		holder := func() string {
			lease, err := client.CoordinationV1().Leases("n").Get(t.Context(), "l", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return *lease.Spec.HolderIdentity
		}

		first := &cutOff{Interface: newLock("first")}
		leads, ended := run(t.Context(), first)
		<-leads
		synctest.Wait() // the first renewal follows at once, and must not overwrite the other's Lease
		first.from.Store(true)
		// The other process leads, as if the first had been suspended for a long time.
		ctx, cancel := context.WithCancel(t.Context())
		other := newLock("second")
		record, _, err := other.Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		record.HolderIdentity, record.RenewTime = "second", metav1.Now()
		if err := other.Update(ctx, *record); err != nil {
			t.Fatal(err)
		}
		<-ended
		if got := holder(); got != "second" {
			t.Errorf("a process that has lost the Lease ends, and its holder is %q, want the second", got)
		}
		leads, ended = run(ctx, other)
		<-leads
		cancel()
		<-ended
		if got := holder(); got != "" {
			t.Errorf("a process that leads ends, and the holder of the Lease is %q, want none", got)
		}
	})
}

func TestLock_NilWithoutElection(t *testing.T) {
	if lock, err := Lock(&rest.Config{}, command.LeaderElection{}); lock != nil || err != nil {
		t.Errorf("%v, %v", lock, err)
	}
}

// TestLock_DoesNotChangeTheConfig guards the user agent, which audit logs record: rest.AddUserAgent sets it in the given config.
func TestLock_DoesNotChangeTheConfig(t *testing.T) {
	config := &rest.Config{Host: "https://hub.example.com", UserAgent: "hub-controller-manager"}
	before := rest.CopyConfig(config)
	lock, err := Lock(config, command.NewLeaderElection("l", "n"))
	if err != nil || lock.Describe() != "n/l" {
		t.Fatalf("%v, %v", lock, err)
	}
	if !reflect.DeepEqual(config, before) {
		t.Errorf("the config is %v, want %v", config, before)
	}
}
