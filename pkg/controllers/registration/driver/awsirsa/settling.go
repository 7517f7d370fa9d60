// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// settleTime is for how long IAM is not believed about what was made or deleted by us. It tells its own parts, and EKS,
// within 10 to 30 seconds.
const settleTime = time.Minute

// settling remembers what IAM and EKS may not see yet. It is lost with the process; the next one takes it that anything may
// have been made the moment before it started.
type settling struct {
	clock   clock.PassiveClock
	started time.Time

	mu    sync.Mutex
	roles map[settlingKey]*settlingRole
	gones map[string]time.Time
	moves map[settlingKey]*settlingMove
	// entries are when access entries have been made.
	entries map[settlingKey]time.Time
}

// settlingKey has the cluster: another that claims the same role must not profit from what is known of it.
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

// created says that a role has been made.
func (s *settling) created(g grant, r role) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	s.roles[keyOf(g)] = &settlingRole{role: r, made: s.clock.Now()}
}

// complete says that the role has its policy too.
func (s *settling) complete(g grant) { s.setReady(g, true) }

// granted says that nothing is missing any more: the next Grant looks at everything.
func (s *settling) granted(g grant) { s.setReady(g, false) }

func (s *settling) setReady(g grant, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.roles[keyOf(g)]; r != nil {
		r.ready = ready
	}
}

// ready returns a role that needs no look because it has just been made.
func (s *settling) ready(g grant) (made *role, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.roles[keyOf(g)]
	if r == nil || !r.ready || s.clock.Since(r.made) > settleTime {
		return nil, false
	}
	return &r.role, true
}

// unseen says that a role that IAM denies may be there nevertheless.
func (s *settling) unseen(g grant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := s.started
	if r := s.roles[keyOf(g)]; r != nil {
		made = r.made
	}
	return s.clock.Since(made) <= settleTime
}

// entered says that the role's access entry has been made, and unseenEntry that one that EKS denies may be there nevertheless.
func (s *settling) entered(g grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	s.entries[keyOf(g)] = s.clock.Now()
}

// entryDeleted says that it has been deleted.
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

// deleted says that the role with the ID has been deleted.
func (s *settling) deleted(g grant, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	delete(s.roles, keyOf(g))
	delete(s.moves, keyOf(g))
	s.gones[id] = s.clock.Now()
}

// gone says that a role that IAM shows is none any more.
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

// sweep drops what has settled, when there is much of it.
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
