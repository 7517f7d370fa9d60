// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

var lastRevoke = []string{"GetRole", "DescribeAccessEntry", "DeleteAccessEntry", "UpdateAssumeRolePolicy", "DeleteRolePolicy", "DeleteRole"}

func TestRevoke_AccessFirst(t *testing.T) {
	f := newHubAWS(t)
	d, _ := newDriver(t, f, Options{})
	rec := f.plan(d, "c", arn1)
	mustGrant(t, d, "c", rec)
	f.taken()
	mustRevoke(t, d, "c", rec)
	mustEqual(t, "calls", f.taken(), lastRevoke)
	f.mustBeEmpty(t)
	mustRevoke(t, d, "c", rec)
	mustEqual(t, "calls of the next", f.taken(), []string{"GetRole", "DescribeAccessEntry"})
}

func TestRevoke_NeverGranted(t *testing.T) {
	f := newHubAWS(t)
	d, _ := newDriver(t, f, Options{})
	mustRevoke(t, d, "c", f.plan(d, "c", arn1))
}

func TestRevoke_AccessDuringIAMOutage(t *testing.T) {
	f := newHubAWS(t)
	d, _ := newDriver(t, f, Options{})
	rec := f.plan(d, "c", arn1)
	mustGrant(t, d, "c", rec)
	mend := f.failing("GetRole", "Throttling", "")
	if err := d.Revoke(t.Context(), "c", rec); err == nil || errors.Is(err, driver.ErrTerminal) {
		t.Errorf("got %v", err)
	}
	if len(f.entries()) > 0 {
		t.Error("the access is left")
	}
	mend()
	mustRevoke(t, d, "c", rec)
	f.mustBeEmpty(t)
}

func TestRevoke_EntryWithoutTags(t *testing.T) {
	f := newHubAWS(t)
	d, _ := newDriver(t, f, Options{})
	rec := f.plan(d, "a", arn1)
	mustGrant(t, d, "a", rec)
	f.changeEntry(func(e *fakeaws.AccessEntry) { e.Tags = nil })
	// Only the role identifies the owner of the entry.
	mustRevoke(t, d, "b", f.plan(d, "b", arn1))
	if len(f.entries()) != 1 {
		t.Fatal("another cluster took it")
	}
	mustRevoke(t, d, "a", rec)
	f.mustBeEmpty(t)
}

func TestRevoke_ReportsRequiredAction(t *testing.T) {
	f := newHubAWS(t)
	d, _ := newDriver(t, f, Options{})
	rec := f.plan(d, "c", arn1)
	mustGrant(t, d, "c", rec)
	mend := f.failing("DeleteRole", "DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")
	err := d.Revoke(t.Context(), "c", rec)
	if !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "must remove roles from instance profile first") {
		t.Errorf("got %v", err)
	}
	mend()
	mustRevoke(t, d, "c", rec)
	f.mustBeEmpty(t)
}

// Even if the deletion fails, the role cannot be assumed any more, and what others have added to it is deleted with it.
func TestRevoke_EmptiesTrustPolicyFirst(t *testing.T) {
	f := newHubAWS(t)
	d, _ := newDriver(t, f, Options{})
	rec := f.plan(d, "c", arn1)
	mustGrant(t, d, "c", rec)
	mend := f.failing("DeleteRolePolicy", "Throttling", "")
	if err := d.Revoke(t.Context(), "c", rec); err == nil {
		t.Error("no error")
	}
	if role, _ := f.role(); !irsa.Equivalent(role.Trust, irsa.NoTrustPolicy().JSON()) || len(f.entries()) > 0 {
		t.Errorf("trust %s, entries %v", role.Trust, f.entries())
	}
	mend()
	f.changeRole(giveMore)
	f.taken()
	mustRevoke(t, d, "c", rec)
	mustEqual(t, "calls", f.taken(), []string{"GetRole", "DescribeAccessEntry", "DeleteRolePolicy", "DeleteRole",
		"ListRolePolicies", "DeleteRolePolicy", "ListAttachedRolePolicies", "DetachRolePolicy", "DeleteRole"})
	f.mustBeEmpty(t)
	// A role whose trust policy cannot be emptied is deleted all the same.
	mustGrant(t, d, "c", rec)
	f.failing("UpdateAssumeRolePolicy", "AccessDenied", "one")
	mustRevoke(t, d, "c", rec)
	f.mustBeEmpty(t)
	// If neither can be done, both are reported.
	mustGrant(t, d, "c", rec)
	f.failing("DeleteRole", "AccessDenied", "two")
	if err := d.Revoke(t.Context(), "c", rec); !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "one") || !strings.Contains(err.Error(), "two") {
		t.Errorf("got %v", err)
	}
}

func TestRevoke_ConcurrentDeletes(t *testing.T) {
	for _, name := range []string{"DeleteAccessEntry", "DeleteRolePolicy", "DeleteRole"} {
		f := newHubAWS(t)
		d, _ := newDriver(t, f, Options{})
		rec := f.plan(d, "c", arn1)
		mustGrant(t, d, "c", rec)
		f.Inject(fakeaws.Fault{Operation: "*:" + name, Hook: func(fakeaws.Call) error {
			f.removeEntry()
			f.removeRole()
			return nil // and the call finds nothing
		}})
		if err := d.Revoke(t.Context(), "c", rec); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		f.mustBeEmpty(t)
	}
}

// giveMore adds rights to a role that the hub has not given it.
func giveMore(r *fakeaws.Role) {
	r.Policies["more"], r.Attached = fakeaws.AllowAll, []string{adminPolicy}
}

func TestCrash_AfterEachCallOfGrant(t *testing.T) {
	for n := 1; ; n++ {
		for _, alsoGrant := range []bool{true, false} {
			f := newHubAWS(t)
			d, _ := newDriver(t, f, Options{})
			rec := f.plan(d, "c", arn1)
			survived := f.dies(n, func() error { return d.Grant(t.Context(), "c", rec) })
			next, _ := newDriver(t, f, Options{})
			if alsoGrant {
				mustGrant(t, next, "c", rec)
				mustWork(t, f, "c")
			}
			mustRevoke(t, next, "c", rec)
			f.mustBeEmpty(t)
			if survived {
				mustEqual(t, "calls of a grant", n, len(firstGrant))
				return
			}
		}
	}
}

func TestCrash_AfterEachCallOfRepair(t *testing.T) {
	for n := 1; ; n++ {
		f := newHubAWS(t)
		d, clk := newDriver(t, f, Options{})
		rec := f.plan(d, "c", arn1)
		mustGrant(t, d, "c", rec)
		f.anHour(clk)
		// Everything that can has drifted.
		f.remakeRole(func(r *fakeaws.Role) {
			r.Trust, r.Policies = irsa.NoTrustPolicy().JSON(), nil
			delete(r.Tags, "hub_cluster_name")
		})
		survived := f.dies(n, func() error { return d.Grant(t.Context(), "c", rec) })
		next, _ := newDriver(t, f, Options{})
		mustGrant(t, next, "c", rec)
		mustWork(t, f, "c")
		mustRevoke(t, next, "c", rec)
		f.mustBeEmpty(t)
		if survived {
			return
		}
	}
}

func TestCrash_AfterEachCallOfRevoke(t *testing.T) {
	for n := 1; ; n++ {
		for _, grantAgain := range []bool{true, false} {
			f := newHubAWS(t)
			d, _ := newDriver(t, f, Options{})
			rec := f.plan(d, "c", arn1)
			mustGrant(t, d, "c", rec)
			f.changeRole(giveMore)
			survived := f.dies(n, func() error { return d.Revoke(t.Context(), "c", rec) })
			if role, there := f.role(); n >= slices.Index(lastRevoke, "UpdateAssumeRolePolicy")+1 && there && !irsa.Equivalent(role.Trust, irsa.NoTrustPolicy().JSON()) {
				t.Errorf("after %d calls the role can still be assumed", n)
			}
			next, _ := newDriver(t, f, Options{})
			if grantAgain {
				if err := next.Grant(t.Context(), "c", rec); err != nil && warningOf(err) == "" {
					t.Fatal(err)
				}
				mustWork(t, f, "c")
			}
			mustRevoke(t, next, "c", rec)
			f.mustBeEmpty(t)
			if survived {
				return
			}
		}
	}
}

func TestFailure_OfEachCallIsRetried(t *testing.T) {
	for _, do := range []struct {
		name  string
		calls []string
		run   func(*Driver) func(context.Context, string, driver.Record) error
	}{
		{"grant", firstGrant, func(d *Driver) func(context.Context, string, driver.Record) error { return d.Grant }},
		{"revoke", slices.DeleteFunc(slices.Clone(lastRevoke), func(c string) bool { return c == "UpdateAssumeRolePolicy" }),
			func(d *Driver) func(context.Context, string, driver.Record) error { return d.Revoke }},
	} {
		for _, name := range do.calls {
			f := newHubAWS(t)
			d, clk := newDriver(t, f, Options{})
			rec := f.plan(d, "c", arn1)
			if do.name == "revoke" {
				mustGrant(t, d, "c", rec)
				clk.pass(time.Hour)
			}
			mend := f.failing(name, "Throttling", "so it is")
			var cause smithy.APIError
			if err := do.run(d)(t.Context(), "c", rec); !errors.As(err, &cause) || cause.ErrorMessage() != "so it is" || errors.Is(err, driver.ErrTerminal) {
				t.Errorf("%s, %s: got %v", do.name, name, err)
			}
			mend()
			if err := do.run(d)(t.Context(), "c", rec); err != nil {
				t.Errorf("%s, %s: %v", do.name, name, err)
			}
			mustRevoke(t, d, "c", rec)
			f.mustBeEmpty(t)
		}
	}
}

func TestRevoke_RetriesInvisibleRole(t *testing.T) {
	f := newHubAWS(t)
	d, clk := newDriver(t, f, Options{})
	rec := f.plan(d, "c", arn1)
	mustGrant(t, d, "c", rec)
	mend := f.failing("GetRole", "NoSuchEntity", "")
	if err := d.Revoke(t.Context(), "c", rec); err == nil || errors.Is(err, driver.ErrTerminal) {
		t.Errorf("got %v", err)
	}
	mend()
	mustRevoke(t, d, "c", rec)
	f.mustBeEmpty(t)
	// A role that others have deleted does not block the revocation.
	mustGrant(t, d, "c", rec)
	f.removeRole()
	clk.pass(2 * time.Minute)
	mustRevoke(t, d, "c", rec)
	f.mustBeEmpty(t)
}

// restart makes the driver one of a process that has just started.
func restart(d *Driver, clk *fakeClock) {
	d.settle = newSettling(clk)
	d.roles.settle, d.entries.settle = d.settle, d.settle
}

// EKS may not show an entry that was created a moment ago. The role is deleted at once, and the entry when EKS shows it.
func TestRevoke_RetriesInvisibleEntry(t *testing.T) {
	for name, sameProcess := range map[string]bool{"by the process that made it": true, "by another": false} {
		t.Run(name, func(t *testing.T) {
			f := newHubAWS(t)
			d, clk := newDriver(t, f, Options{})
			rec := f.plan(d, "c", arn1)
			f.SetLag(fakeaws.Lag{Entries: fakeaws.Delay{Reads: 2}})
			mustGrant(t, d, "c", rec)
			if !sameProcess {
				d, clk = newDriver(t, f, Options{})
				restart(d, clk)
			}
			if err := d.Revoke(t.Context(), "c", rec); err == nil || errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "may still return one") {
				t.Errorf("got %v", err)
			}
			if _, there := f.role(); there {
				t.Error("the role is left until the entry shows")
			}
			for range 3 {
				_ = d.Revoke(t.Context(), "c", rec)
			}
			f.mustBeEmpty(t)
			clk.pass(2 * settleTime)
			mustRevoke(t, d, "c", rec)
		})
	}
}

// A process does not know what the previous one created a moment ago, and IAM may not show it.
func TestRevoke_NewProcessDeletesInvisibleRole(t *testing.T) {
	f := newHubAWS(t)
	before, _ := newDriver(t, f, Options{})
	rec := f.plan(before, "c", arn1)
	mustGrant(t, before, "c", rec)
	mend := f.failing("GetRole", "NoSuchEntity", "")
	d, clk := newDriver(t, f, Options{})
	restart(d, clk)
	if err := d.Revoke(t.Context(), "c", rec); err == nil || errors.Is(err, driver.ErrTerminal) {
		t.Errorf("got %v", err)
	}
	if len(f.entries()) > 0 {
		t.Error("the access is left")
	}
	mend()
	mustRevoke(t, d, "c", rec)
	f.mustBeEmpty(t)
	clk.pass(2 * settleTime)
	mustRevoke(t, d, "c", rec)
}
