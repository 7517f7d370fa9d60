// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

// mover is a world whose hub changes its --eks-access.
type mover struct {
	*world
	a   irsa.Identity
	rec driver.Record
}

// newMover returns a mover with an accepted cluster.
func newMover(t *testing.T, access Access) *mover {
	t.Helper()
	// It needs the permissions for access entries throughout.
	w := newWorld(t, "us-west-2", AccessEntry, nil)
	m := &mover{world: w}
	m.restart(access)
	m.a, m.rec = w.join("a")
	mustGrant(t, m.Driver, "a", m.rec)
	return m
}

// restart starts another process, with that --eks-access.
func (m *mover) restart(access Access) {
	m.Helper()
	m.Driver = must(New(Options{HubClusterARN: m.cluster.String(), AWS: m.config, Access: access, Kube: m.kube,
		Tags: map[string]string{"team": "platform"}, Clock: m.clock}))(m.T)
	m.clock.pass(2 * settleTime)
}

// check does what clusteracceptance does when a check is due.
func (m *mover) check() (said string) {
	m.Helper()
	m.rec = m.Move("a", m.rec)
	return m.mustGrantWith("a", m.rec)
}

// has returns the accesses of the role.
func (m *mover) has() (all []Access) {
	m.Helper()
	if _, ok := m.hub.AccessEntries(m.cluster.String())[m.a.HubRoleARN()]; ok {
		all = append(all, AccessEntry)
	}
	if strings.Contains(awsAuthOf(m.T, m.kube).Data["mapRoles"], m.a.HubRoleARN()) {
		all = append(all, AWSAuth)
	}
	return all
}

func TestMove_GrantsNewAccessBeforeRevokingOld(t *testing.T) {
	both := []Access{AccessEntry, AWSAuth}
	for from, to := range map[Access]Access{AccessEntry: AWSAuth, AWSAuth: AccessEntry} {
		t.Run("to "+string(to), func(t *testing.T) {
			m := newMover(t, from)
			mustEqual(t, "before", m.has(), []Access{from})
			accepted := m.rec
			m.restart(to)
			planned := must(m.Plan(newCluster("a", annotation, m.a.Managed.String())))(t)

			said := m.check()
			mustEqual(t, "after the first check", m.has(), both)
			mustEqual(t, "it says", said, "Its access is granted by "+string(to)+" now. Its access by "+string(from)+" is removed at the next check")
			if m.rec == accepted || m.rec == planned || !m.Same(m.rec, planned) || !m.Same(accepted, planned) {
				t.Errorf("the record is %s", m.rec)
			}
			m.clock.pass(settleTime / 2)
			m.check()
			mustEqual(t, "before EKS need have seen it", m.has(), both)

			// A new process does not know since when it exists.
			m.restart(to)
			m.check()
			mustEqual(t, "after a restart", m.has(), both)
			m.clock.pass(time.Hour)
			mustEqual(t, "it says at last", m.check(), "")
			mustEqual(t, "after the last check", m.has(), []Access{to})
			m.clock.pass(time.Hour)
			m.check()
			mustEqual(t, "record", m.rec, planned)
			m.clock.pass(time.Hour)
			m.ResetCalls()
			m.kube.ClearActions()
			m.check()
			mustEqual(t, "writes afterwards", len(m.Writes()), 0)
			if n := len(m.kube.Actions()); to == AccessEntry && n > 0 {
				t.Errorf("%d requests for aws-auth, for which the hub need have no right any more", n)
			}
			if to == AccessEntry {
				m.mustEnter(m.a)
			}
			mustRevoke(t, m.Driver, "a", m.rec)
			mustEqual(t, "left", m.leaks(), []string(nil))
		})
	}
}

func TestMove_IsInterruptibleAndReversible(t *testing.T) {
	for from, to := range map[Access]Access{AccessEntry: AWSAuth, AWSAuth: AccessEntry} {
		for checks := range 4 {
			m := newMover(t, from)
			m.restart(to)
			for range checks {
				m.check()
				m.clock.pass(time.Hour)
			}
			m.restart(from)
			for range 3 {
				m.check()
				m.clock.pass(time.Hour)
			}
			mustEqual(t, "back again", m.has(), []Access{from})

			m.restart(to)
			for range checks {
				m.check()
				m.clock.pass(time.Hour)
			}
			m.restart(to)
			mustRevoke(t, m.Driver, "a", m.rec)
			mustEqual(t, "left", m.leaks(), []string(nil))
		}
	}
}

// The former access stays while the new one cannot be granted.
func TestMove_WaitsForNewAccess(t *testing.T) {
	m := newMover(t, AWSAuth)
	m.restart(AccessEntry)
	mend := m.Inject(fakeaws.Fault{Operation: "eks:*AccessEntry", Err: &fakeaws.Error{Code: "InvalidRequestException",
		Message: "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP]"}})
	for range 3 {
		m.rec = m.Move("a", m.rec)
		if err := m.Grant(t.Context(), "a", m.rec); !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "authentication mode") {
			t.Errorf("got %v", err)
		}
		m.clock.pass(time.Hour)
	}
	mustEqual(t, "has", m.has(), []Access{AWSAuth})
	mend()
	for range 2 {
		m.check()
		m.clock.pass(time.Hour)
	}
	mustEqual(t, "at last", m.has(), []Access{AccessEntry})
}

// A record of another hub is reported by Grant, and not changed.
func TestMove_IgnoresOtherRecords(t *testing.T) {
	m := newMover(t, AWSAuth)
	for _, rec := range []driver.Record{"", "{", "{}", driver.Record(strings.ReplaceAll(string(m.rec), "aws-auth", "x")),
		driver.Record(strings.Replace(string(m.rec), "}", `,"former":"x"}`, 1)), driver.Record(strings.Replace(string(m.rec), "}", `,"former":"aws-auth"}`, 1))} {
		mustEqual(t, "moved", m.Move("a", rec), rec)
		if err := m.Grant(t.Context(), "a", rec); !errors.Is(err, driver.ErrTerminal) {
			t.Errorf("%s: got %v", rec, err)
		}
	}
	other := driver.Record(strings.ReplaceAll(string(m.rec), m.a.HubRole(), "ocm-hub-x"))
	if m.Same(m.rec, other) || m.Same(m.rec, "{") {
		t.Error("another role is the same")
	}
}
