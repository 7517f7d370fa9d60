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

	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// seenStep is how exact metrics are about signs of life.
const seenStep = 5 * time.Second

// beats are the signs of life of agents. As a handler of the events of Leases it takes note of them, and asks for a
// reconciliation only where one may have something to write.
type beats struct {
	clock clock.PassiveClock

	mu sync.Mutex
	of map[string]*beat
	// seen has the at of all, for metrics: a beat costs two numbers, however many there are.
	seen *kit.Moments
}

// beat is the last sign of life of one agent.
type beat struct {
	// at is when it was seen, by the monotonic clock of this process.
	at time.Time
	// renewed is what the Lease says; nil while it has not been seen.
	renewed *metav1.MicroTime
	// grace is how long the agent may be silent.
	grace time.Duration
	// skew is by how much the agent's clock was behind when it was seen to renew the Lease; nil while it has not been.
	skew *time.Duration
	// silent says that the condition was set to Unknown.
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

// Delete implements handler.EventHandler: the last sign of life was the last renewal, and the next Lease is a new one.
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

// beat takes note of a Lease. It says whether the clock of the agent has to be judged: it never has been, or it may have
// come right or gone wrong.
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
		return false // it may have been renewed at any time before, and by the hub
	}
	// By the wall clocks, which are what is compared.
	skew := now.Round(0).Sub(renewed.Time)
	judge := s.skew == nil || outOfSync(*s.skew, s.grace) != outOfSync(skew, s.grace)
	s.skew = &skew
	return judge
}

// outOfSync says whether a clock is so wrong that its owner would be taken for dead by it.
func outOfSync(skew, grace time.Duration) bool { return skew.Abs() >= grace }

// until returns how long it is until the agent has been silent for the grace. The agent also gives a sign of life when it
// writes that its cluster is available, after it had been silent.
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

// silent notes that the silence of an agent is written.
func (b *beats) silent(cluster string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.of[cluster]; s != nil {
		s.silent = true
	}
}

// skew returns by how much an agent's clock was behind, nil while that is not known.
func (b *beats) skew(cluster string) *time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.of[cluster]; s != nil {
		return s.skew
	}
	return nil
}

// known returns what is known of an agent. One that is heard of for the first time has just been alive.
func (b *beats) known(cluster string) *beat {
	s := b.of[cluster]
	if s == nil {
		s = &beat{grace: missedRenewals * defaultLeaseSeconds * time.Second}
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
