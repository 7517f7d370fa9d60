// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import (
	"sync"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement"
)

// inbox has the changes that the hub has not processed yet. A round with CEL takes seconds, and neither watches nor workers wait for it: their
// changes are processed before the next use of the hub, in the order in which they came. It grows as the informers' own buffers would.
type inbox struct {
	mu     sync.Mutex
	queued []func()
}

func (i *inbox) add(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.queued = append(i.queued, change)
}

// next takes the first change, or returns nil.
func (i *inbox) next() func() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.queued) == 0 {
		i.queued = nil
		return nil
	}
	change := i.queued[0]
	i.queued = i.queued[1:]
	return change
}

// sharedScheduler is the scheduler that watches, rounds and workers share.
type sharedScheduler struct {
	clock clock.PassiveClock
	// mu guards the hub and the next two fields. A round holds it for as long as CEL takes. Watches and workers use the inbox instead of waiting
	// for it.
	mu  sync.Mutex
	hub *placement.Scheduler
	// unseenDecisions and unseenPlacements are writes that no watch has reported yet.
	unseenDecisions, unseenPlacements unseen
	inbox                             inbox
}

// enter must be called before the hub is used, and mu be unlocked after it.
func (s *sharedScheduler) enter() {
	s.mu.Lock()
	s.listen()
}

// listen processes the changes. It takes one change at a time, so that a panic loses no other.
func (s *sharedScheduler) listen() {
	for change := s.inbox.next(); change != nil; change = s.inbox.next() {
		change()
	}
}

// enqueue processes a change now, unless the hub is in use. Then the next round does so, which the caller enqueues.
func (s *sharedScheduler) enqueue(change func()) {
	s.inbox.add(change)
	if s.mu.TryLock() {
		defer s.mu.Unlock()
		s.listen()
	}
}

// isCurrent reports whether the placement still exists, and is not a different one of its name.
func (s *sharedScheduler) isCurrent(p *clusterv1beta1.Placement) bool {
	now := s.hub.Placement(client.ObjectKeyFromObject(p))
	return now != nil && now.UID == p.UID
}
