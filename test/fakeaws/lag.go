// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"maps"
	"slices"
	"time"
)

// Delay ends when that many looks are over and that time has passed.
type Delay struct {
	Reads int
	For   time.Duration
}

// Lag is for how long reads still tell what was before a write, as they may where a service is eventually consistent. For new roles that
// is DelayVisibility. Writes, and decisions by policies and tags, go by what is.
type Lag struct {
	// Policies are trust policies, inline policies, those that are attached and permissions boundaries; Tags those of roles.
	Policies, Tags Delay
	// Entries are access entries with all that they have. Tokens are read by them, too.
	Entries Delay
}

// SetLag delays what is written from now on. There is no delay by default.
func (s *Server) SetLag(l Lag) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = l
}

// past is what something was before the last writes. It is empty when nothing is delayed.
type past[T any] struct {
	value T
	reads int
	until time.Time
}

// keep remembers what is about to be overwritten. What was before an earlier write, and still shows, shows on.
func (p *past[T]) keep(value T, d Delay, now time.Time) {
	if d == (Delay{}) {
		return
	}
	if p.reads == 0 && !now.Before(p.until) {
		p.value = value
	}
	p.reads, p.until = d.Reads, now.Add(d.For)
}

// seen is what a read tells.
func (p *past[T]) seen(is T, now time.Time) T {
	if p.reads > 0 {
		p.reads--
		return p.value
	}
	if now.Before(p.until) {
		return p.value
	}
	return is
}

func (p *past[T]) age(d time.Duration) { p.until = p.until.Add(-d) }

// policies are all that a role has.
type policies struct {
	trust    *policy
	inline   map[string]*policy
	attached []string
	boundary string
}

// keepPolicies is called before a role's policies change, and keepTags before its tags do.
func (r *request) keepPolicies(of *role) {
	of.pastPolicies.keep(policies{of.trust, maps.Clone(of.policies), slices.Clone(of.attached), of.boundary}, r.lag.Policies, r.now())
}

func (r *request) keepTags(of *role) { of.pastTags.keep(slices.Clone(of.tags), r.lag.Tags, r.now()) }

// seenPolicies and seenTags are what a read tells of a role.
func (r *request) seenPolicies(of *role) policies {
	return of.pastPolicies.seen(policies{of.trust, of.policies, of.attached, of.boundary}, r.now())
}

func (r *request) seenTags(of *role) []Tag { return of.pastTags.seen(of.tags, r.now()) }

// keepEntry is called before the entry of a principal changes, comes or goes.
func (r *request) keepEntry(c *cluster, principal string) {
	var was *AccessEntry
	if e := c.entries[principal]; e != nil {
		whole := e.copy()
		whole.policies = maps.Clone(e.policies)
		was = &whole
	}
	if c.pastEntries[principal] == nil {
		c.pastEntries[principal] = &past[*AccessEntry]{}
	}
	c.pastEntries[principal].keep(was, r.lag.Entries, r.now())
}

// seenEntry is the entry of a principal as a read tells it, or nil.
func (s *Server) seenEntry(c *cluster, principal string) *AccessEntry {
	if p := c.pastEntries[principal]; p != nil {
		return p.seen(c.entries[principal], s.now())
	}
	return c.entries[principal]
}
