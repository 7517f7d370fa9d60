// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// settleTime is the time for which reads of IAM are not trusted about what the hub has created or deleted. IAM propagates changes to its own parts,
// and to EKS, within 10 to 30 seconds.
const settleTime = time.Minute

// settling records what IAM and EKS may not show yet. It is lost with the process; a new process assumes that anything may have been created the
// moment before it started.
type settling struct {
	clock   clock.PassiveClock
	started time.Time

	mu    sync.Mutex
	roles map[settlingKey]*settlingRole
	gones map[string]time.Time
	moves map[settlingKey]*settlingMove
	// entries are the times at which access entries were created.
	entries map[settlingKey]time.Time
}

// settlingKey includes the cluster: another one that claims the same role must not use what is known of it.
type settlingKey struct{ role, cluster string }

type settlingRole struct {
	role role
	made time.Time
	// ready is set while only the access is missing.
	ready bool
}

func newSettling(clock clock.PassiveClock) *settling {
	return &settling{clock: clock, started: clock.Now(), roles: map[settlingKey]*settlingRole{}, gones: map[string]time.Time{},
		moves: map[settlingKey]*settlingMove{}, entries: map[settlingKey]time.Time{}}
}

func keyOf(g grant) settlingKey { return settlingKey{role: g.HubRole(), cluster: g.cluster} }

// created records that a role was created.
func (s *settling) created(g grant, r role) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	s.roles[keyOf(g)] = &settlingRole{role: r, made: s.clock.Now()}
}

// complete records that the role has its policy too.
func (s *settling) complete(g grant) { s.setReady(g, true) }

// granted records that the grant is complete: the next Grant reads everything.
func (s *settling) granted(g grant) { s.setReady(g, false) }

func (s *settling) setReady(g grant, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.roles[keyOf(g)]; r != nil {
		r.ready = ready
	}
}

// ready returns a role that need not be read because it was created a moment ago.
func (s *settling) ready(g grant) (made *role, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.roles[keyOf(g)]
	if r == nil || !r.ready || s.clock.Since(r.made) > settleTime {
		return nil, false
	}
	return &r.role, true
}

// unseen reports whether a role may exist that IAM does not show.
func (s *settling) unseen(g grant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := s.started
	if r := s.roles[keyOf(g)]; r != nil {
		made = r.made
	}
	return s.clock.Since(made) <= settleTime
}

// entered records that the role's access entry was created, and unseenEntry reports whether an entry may exist that EKS does not show.
func (s *settling) entered(g grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	s.entries[keyOf(g)] = s.clock.Now()
}

// entryDeleted records that the entry was deleted.
func (s *settling) entryDeleted(g grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[keyOf(g)] = time.Time{}
}

func (s *settling) unseenEntry(g grant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	made, ok := s.entries[keyOf(g)]
	if !ok {
		made = s.started
	}
	return s.clock.Since(made) <= settleTime
}

// deleted records that the role with the ID was deleted.
func (s *settling) deleted(g grant, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	delete(s.roles, keyOf(g))
	delete(s.moves, keyOf(g))
	s.gones[id] = s.clock.Now()
}

// gone reports whether a role that IAM shows was deleted.
func (s *settling) gone(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.gones[id]
	return ok && s.clock.Since(at) <= settleTime
}

func (s *settling) forget(g grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.roles, keyOf(g))
	delete(s.moves, keyOf(g))
}

// sweep drops settled records if there are many.
func (s *settling) sweep() {
	const many = 1000
	if len(s.roles)+len(s.gones)+len(s.entries) < many {
		return
	}
	for key, r := range s.roles {
		if s.clock.Since(r.made) > settleTime {
			delete(s.roles, key)
		}
	}
	for key, at := range s.entries {
		if s.clock.Since(at) > settleTime {
			delete(s.entries, key)
		}
	}
	for id, at := range s.gones {
		if s.clock.Since(at) > settleTime {
			delete(s.gones, id)
		}
	}
}
