// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import "sync"

// inbox keeps what the hub has to hear. A round takes seconds where CEL does, and meanwhile neither watches nor workers wait for it: what
// they tell is heard before the next use of the hub, in the order in which it was told. It grows as the informers' own buffers would.
type inbox struct {
	mu   sync.Mutex
	told []func()
}

func (i *inbox) add(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.told = append(i.told, change)
}

// next takes the first one, or nil.
func (i *inbox) next() func() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.told) == 0 {
		i.told = nil
		return nil
	}
	change := i.told[0]
	i.told = i.told[1:]
	return change
}

// enter is called before the hub is used, and mu is unlocked after it.
func (r *Reconciler) enter() {
	r.mu.Lock()
	r.listen()
}

// listen has the hub hear what it was told. One change at a time is taken out, so that a panic loses no other.
func (r *Reconciler) listen() {
	for change := r.inbox.next(); change != nil; change = r.inbox.next() {
		change()
	}
}

// hear has the hub hear of a change: now, unless the hub is in use. Then the next round does so, which the caller asks for.
func (r *Reconciler) hear(change func()) {
	r.inbox.add(change)
	if r.mu.TryLock() {
		defer r.mu.Unlock()
		r.listen()
	}
}
