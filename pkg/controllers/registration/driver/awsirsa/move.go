// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
)

// A cluster that was accepted with another --eks-access moves, a step at each check: it gets the new access, and loses the former one when EKS has
// had the time to see the new one. As long as it has both, EKS uses the access entry. The record has the former one until this process has deleted
// it.

// Move implements driver.Mover.
func (d *Driver) Move(cluster string, rec driver.Record) driver.Record {
	g, err := d.read(cluster, rec)
	if err != nil {
		return rec // Grant reports it
	}
	var r record
	if err := json.Unmarshal([]byte(rec), &r); err != nil {
		return rec
	}
	switch {
	case r.Access != d.access:
		r.Access, r.Former = d.access, r.Access
	case r.Former != "" && d.settle.left(g):
		r.Former = ""
	default:
		return rec
	}
	text, err := json.Marshal(r)
	if err != nil {
		return rec
	}
	return driver.Record(text)
}

// Same implements driver.Mover.
func (d *Driver) Same(a, b driver.Record) bool {
	var x, y record
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	x.Access, x.Former, y.Access, y.Former = "", "", "", ""
	x.RolePath, y.RolePath = "", "" // a role keeps its path, and so does its record; Grant reports it
	return x == y
}

func (d *Driver) ensureAccess(ctx context.Context, g grant, r *role, fresh bool) error {
	if g.access == AWSAuth {
		return d.awsAuth.ensure(ctx, g)
	}
	return d.entries.ensure(ctx, g, r, fresh)
}

// removeAccess deletes an access of a role, if it exists. It reports in again whether it must be called again.
func (d *Driver) removeAccess(ctx context.Context, g grant, access Access, mine bool) (again bool, err error) {
	switch access {
	case AWSAuth:
		return false, d.awsAuth.remove(ctx, g, mine)
	case AccessEntry:
		return d.entries.remove(ctx, g)
	}
	return false, nil
}

// deleteFormer deletes the former access, once the role has had its new one for long enough.
func (d *Driver) deleteFormer(ctx context.Context, g grant) error {
	if g.former == "" {
		return nil
	}
	if !d.settle.moved(g) {
		g.note(fmt.Sprintf("Its access is granted by %s now. Its access by %s is removed at the next check", g.access, g.former))
		return nil
	}
	if _, err := d.removeAccess(ctx, g, g.former, true); err != nil {
		return err
	}
	d.settle.recordDeleted(g)
	return nil
}

// settlingMove is the time at which this process first saw that a role has its new access, and whether it has deleted the former.
type settlingMove struct {
	to   Access
	at   time.Time
	left bool
}

// moved reports whether the role has had its new access for long enough.
func (s *settling) moved(g grant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.moves[keyOf(g)]
	if m == nil || m.to != g.access {
		m = &settlingMove{to: g.access, at: s.clock.Now()}
		s.moves[keyOf(g)] = m
	}
	return s.clock.Since(m.at) > settleTime
}

// recordDeleted records that the former access is deleted, and left reports it.
func (s *settling) recordDeleted(g grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.moves[keyOf(g)]; m != nil {
		m.left = true
	}
}

func (s *settling) left(g grant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.moves[keyOf(g)]
	return m != nil && m.to == g.access && m.left
}
