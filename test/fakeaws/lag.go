// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"github.com/clusterhub/clusterhub/test/fakeaws/api"
	"github.com/clusterhub/clusterhub/test/fakeaws/iampolicy"
	"maps"
	"slices"
	"time"
)

// Delay ends after this number of reads and this time.
type Delay struct {
	Reads int
	For   time.Duration
}

// Lag is the time for which reads return the previous state after a write, as with an eventually consistent service. For new roles it is DelayVisibility.
// Writes, and decisions by policies and tags, use the current state.
type Lag struct {
	// Policies is for trust policies, inline policies, attached policies and permissions boundaries. Tags is for tags of roles.
	Policies, Tags Delay
	// Entries is for access entries with all their fields. The authentication of tokens reads them, too.
	Entries Delay
}

// past is the state of something before the last writes. It is empty if nothing is delayed.
type past[T any] struct {
	value T
	reads int
	until time.Time
}

// keep stores the value that is about to be overwritten. If the value before an earlier write is still visible, it stays visible.
func (p *past[T]) keep(value T, d Delay, now time.Time) {
	if d == (Delay{}) {
		return
	}
	if p.reads == 0 && !now.Before(p.until) {
		p.value = value
	}
	p.reads, p.until = d.Reads, now.Add(d.For)
}

// seen returns the value for a read.
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

// policies are all policies of a role.
type policies struct {
	trust    *iampolicy.Policy
	inline   map[string]*iampolicy.Policy
	attached []string
	boundary string
}

// keepPolicies must be called before a role's policies change, and keepTags before its tags do.
func keepPolicies(r *request, of *role) {
	of.pastPolicies.keep(policies{of.trust, maps.Clone(of.policies), slices.Clone(of.attached), of.boundary}, r.lag.Policies, r.now())
}

func keepTags(r *request, of *role) { of.pastTags.keep(slices.Clone(of.tags), r.lag.Tags, r.now()) }

// seenPolicies and seenTags return the values for a read of a role.
func seenPolicies(r *request, of *role) policies {
	return of.pastPolicies.seen(policies{of.trust, of.policies, of.attached, of.boundary}, r.now())
}

func seenTags(r *request, of *role) []api.Tag { return of.pastTags.seen(of.tags, r.now()) }

// keepEntry must be called before the entry of a principal is created, changed or deleted.
func keepEntry(r *request, c *cluster, principal string) {
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

// seenEntry returns the entry of a principal for a read, or nil.
func seenEntry(s *Server, c *cluster, principal string) *AccessEntry {
	if p := c.pastEntries[principal]; p != nil {
		return p.seen(c.entries[principal], s.now())
	}
	return c.entries[principal]
}
