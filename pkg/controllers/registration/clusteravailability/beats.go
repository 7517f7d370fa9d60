// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteravailability

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// seenStep is the resolution of metrics about signs of life.
const seenStep = 5 * time.Second

// beats are the signs of life of agents. As a handler of the events of Leases, it records them, and requests a reconciliation only if something may
// have to be written.
type beats struct {
	clock clock.PassiveClock

	mu sync.Mutex
	of map[string]*beat
	// seen has the times of all agents, for metrics: a beat changes two counters, however many agents there are.
	seen *kit.Moments
}

// beat is the last sign of life of one agent.
type beat struct {
	// at is the time at which it was seen, by the monotonic clock of this process.
	at time.Time
	// renewed is the renew time of the Lease; nil while it has not been seen.
	renewed *metav1.MicroTime
	// grace is the time for which the agent may be silent.
	grace time.Duration
	// skew is the lag of the agent's clock when a renewal was seen; nil while none was.
	skew *time.Duration
	// silent reports whether the condition was set to Unknown.
	silent bool
}

var _ handler.EventHandler = &beats{}

func newBeats(clock clock.PassiveClock) *beats {
	return &beats{clock: clock, of: map[string]*beat{}, seen: kit.NewMoments(seenStep)}
}

// Create implements handler.EventHandler.
func (b *beats) Create(_ context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	b.see(e.Object, queue)
}

// Update implements handler.EventHandler.
func (b *beats) Update(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	b.see(e.ObjectNew, queue)
}

// Delete implements handler.EventHandler. The last sign of life was the last renewal, and the next Lease is a new one.
func (b *beats) Delete(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.of[e.Object.GetNamespace()]; s != nil && e.Object.GetName() == registration.LeaseName {
		s.renewed, s.skew = nil, nil
	}
}

// Generic implements handler.EventHandler.
func (b *beats) Generic(context.Context, event.GenericEvent, workqueue.TypedRateLimitingInterface[reconcile.Request]) {
}

func (b *beats) see(obj client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	lease, ok := obj.(*coordinationv1.Lease)
	if !ok || lease.Name != registration.LeaseName || lease.Labels[registration.ClusterNameLabel] != lease.Namespace {
		return
	}
	if b.beat(lease) {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: lease.Namespace}})
	}
}

// beat records a Lease. It reports whether the clock of the agent must be checked: it never was, or the result may have changed.
func (b *beats) beat(lease *coordinationv1.Lease) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	s := b.known(lease.Namespace)
	renewed := lease.Spec.RenewTime
	if renewed == nil || s.renewed.Equal(renewed) {
		return false
	}
	first := s.renewed == nil
	s.renewed, s.silent = renewed, false
	b.setAt(s, now)
	if first {
		return false // it may have been renewed at any time before, or by the hub
	}
	// By the wall clocks, which are compared here.
	skew := now.Round(0).Sub(renewed.Time)
	judge := s.skew == nil || outOfSync(*s.skew, s.grace) != outOfSync(skew, s.grace)
	s.skew = &skew
	return judge
}

// outOfSync reports whether a clock is so wrong that the agent would be considered dead by it.
func outOfSync(skew, grace time.Duration) bool { return skew.Abs() >= grace }

// until returns the time until the agent has been silent for the grace period. An agent that was silent also gives a sign of life when it sets the
// condition Available.
func (b *beats) until(cluster string, grace time.Duration, unknown bool) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	s := b.known(cluster)
	s.grace = grace
	if s.silent && !unknown {
		s.silent = false
		b.setAt(s, now)
	}
	return s.at.Add(grace).Sub(now)
}

// silent records that the condition of a silent agent is written.
func (b *beats) silent(cluster string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.of[cluster]; s != nil {
		s.silent = true
	}
}

// skew returns the lag of an agent's clock, or nil if it is not known.
func (b *beats) skew(cluster string) *time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.of[cluster]; s != nil {
		return s.skew
	}
	return nil
}

// known returns the state of an agent. A new one counts as alive now.
func (b *beats) known(cluster string) *beat {
	s := b.of[cluster]
	if s == nil {
		s = &beat{grace: registration.LeaseGracePeriod(registration.LeaseDuration(0))}
		b.setAt(s, b.clock.Now())
		b.of[cluster] = s
	}
	return s
}

func (b *beats) forget(cluster string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.of[cluster]; s != nil {
		b.setAt(s, time.Time{})
		delete(b.of, cluster)
	}
}
