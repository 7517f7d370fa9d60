// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import "sync"

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

// enter must be called before the hub is used, and mu be unlocked after it.
func (r *Reconciler) enter() {
	r.mu.Lock()
	r.listen()
}

// listen processes the changes. It takes one change at a time, so that a panic loses no other.
func (r *Reconciler) listen() {
	for change := r.inbox.next(); change != nil; change = r.inbox.next() {
		change()
	}
}

// enqueue processes a change now, unless the hub is in use. Then the next round does so, which the caller enqueues.
func (r *Reconciler) enqueue(change func()) {
	r.inbox.add(change)
	if r.mu.TryLock() {
		defer r.mu.Unlock()
		r.listen()
	}
}
