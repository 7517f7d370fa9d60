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

	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/smithy-go"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/irsa"
)

var lastRevoke = []string{"GetRole", "DescribeAccessEntry", "DeleteAccessEntry", "UpdateAssumeRolePolicy", "DeleteRolePolicy", "DeleteRole"}

func TestRevoke_TakesAccessFirst(t *testing.T) {
	f := newFakeAWS()
	d, _ := newDriver(t, f, Config{})
	rec := plan(t, d, "c", arn1)
	mustGrant(t, d, "c", rec)
	f.taken()
	mustRevoke(t, d, "c", rec)
	mustEqual(t, "calls", f.taken(), lastRevoke)
	f.mustBeEmpty(t)
	mustRevoke(t, d, "c", rec)
	mustEqual(t, "calls of the next", f.taken(), []string{"GetRole", "DescribeAccessEntry"})
}

func TestRevoke_OfWhatWasNeverGranted(t *testing.T) {
	f := newFakeAWS()
	d, _ := newDriver(t, f, Config{})
	mustRevoke(t, d, "c", plan(t, d, "c", arn1))
}

func TestRevoke_TakesAccessWhileIAMDoesNotAnswer(t *testing.T) {
	f := newFakeAWS()
	d, _ := newDriver(t, f, Config{})
	rec := plan(t, d, "c", arn1)
	mustGrant(t, d, "c", rec)
	f.before = failing("GetRole", &smithy.GenericAPIError{Code: "Throttling"})
	if err := d.Revoke(t.Context(), "c", rec); err == nil || errors.Is(err, driver.ErrTerminal) {
		t.Errorf("got %v", err)
	}
	if len(f.entries) > 0 {
		t.Error("the access is left")
	}
	f.before = nil
	mustRevoke(t, d, "c", rec)
	f.mustBeEmpty(t)
}

func TestRevoke_TakesAnEntryThatHasLostItsTags(t *testing.T) {
	f := newFakeAWS()
	d, _ := newDriver(t, f, Config{})
	rec := plan(t, d, "a", arn1)
	mustGrant(t, d, "a", rec)
	f.entries[role1AR].Tags = nil
	// Whose it is, only the role says.
	mustRevoke(t, d, "b", plan(t, d, "b", arn1))
	if len(f.entries) != 1 {
		t.Fatal("another cluster took it")
	}
	mustRevoke(t, d, "a", rec)
	f.mustBeEmpty(t)
}

func TestRevoke_SaysWhatSomebodyElseHasToDo(t *testing.T) {
	f := newFakeAWS()
	d, _ := newDriver(t, f, Config{})
	rec := plan(t, d, "c", arn1)
	mustGrant(t, d, "c", rec)
	f.roles[role1].used = true
	err := d.Revoke(t.Context(), "c", rec)
	if !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "must detach all policies first") {
		t.Errorf("got %v", err)
	}
	f.roles[role1].used = false
	mustRevoke(t, d, "c", rec)
	f.mustBeEmpty(t)
}

// Whatever comes of the deletion, the role cannot be assumed any more, and what others have given it goes with it.
func TestRevoke_EmptiesTheRoleOfTrustFirst(t *testing.T) {
	f := newFakeAWS()
	d, _ := newDriver(t, f, Config{})
	rec := plan(t, d, "c", arn1)
	mustGrant(t, d, "c", rec)
	f.before = failing("DeleteRolePolicy", &smithy.GenericAPIError{Code: "Throttling"})
	if err := d.Revoke(t.Context(), "c", rec); err == nil {
		t.Error("no error")
	}
	if !irsa.Equivalent(f.roles[role1].trust, irsa.NoTrustPolicy().JSON()) || len(f.entries) > 0 {
		t.Errorf("trust %s, %d entries", f.roles[role1].trust, len(f.entries))
	}
	f.before = nil
	f.roles[role1].policies["more"], f.roles[role1].attached = "{}", []string{"arn:aws:iam::aws:policy/X"}
	f.taken()
	mustRevoke(t, d, "c", rec)
	mustEqual(t, "calls", f.taken(), []string{"GetRole", "DescribeAccessEntry", "DeleteRolePolicy", "DeleteRole",
		"ListRolePolicies", "DeleteRolePolicy", "ListAttachedRolePolicies", "DetachRolePolicy", "DeleteRole"})
	f.mustBeEmpty(t)
	// A role that cannot be emptied is deleted all the same.
	mustGrant(t, d, "c", rec)
	f.before = failing("UpdateAssumeRolePolicy", &smithy.GenericAPIError{Code: "AccessDenied"})
	mustRevoke(t, d, "c", rec)
	f.mustBeEmpty(t)
	// Both are told when neither can be done.
	mustGrant(t, d, "c", rec)
	f.before = func(call string) error {
		return errors.Join(failing("UpdateAssumeRolePolicy", &smithy.GenericAPIError{Code: "AccessDenied", Message: "one"})(call),
			failing("DeleteRole", &smithy.GenericAPIError{Code: "AccessDenied", Message: "two"})(call))
	}
	if err := d.Revoke(t.Context(), "c", rec); !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "one") || !strings.Contains(err.Error(), "two") {
		t.Errorf("got %v", err)
	}
}

func TestRevoke_ToleratesThatOthersDeleteToo(t *testing.T) {
	for _, name := range []string{"DeleteAccessEntry", "DeleteRolePolicy", "DeleteRole"} {
		f := newFakeAWS()
		d, _ := newDriver(t, f, Config{})
		rec := plan(t, d, "c", arn1)
		mustGrant(t, d, "c", rec)
		f.before = func(call string) error {
			if call != name {
				return nil
			}
			delete(f.entries, role1AR)
			delete(f.roles, role1)
			return nil // and the call finds nothing
		}
		if err := d.Revoke(t.Context(), "c", rec); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		f.mustBeEmpty(t)
	}
}

// die ends the process after the nth call, which has had its effect.
func die(n int) func(string) {
	return func(string) {
		if n--; n == 0 {
			panic(errDied)
		}
	}
}

var errDied = errors.New("died")

// survive says whether the function was carried out before the process ended.
func survive(t *testing.T, do func() error) (survived bool) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil && r != errDied {
			panic(r)
		}
	}()
	if err := do(); err != nil {
		t.Fatal(err)
	}
	return true
}

func TestCrash_AfterEachCallOfGrant(t *testing.T) {
	for n := 1; ; n++ {
		for _, alsoGrant := range []bool{true, false} {
			f := newFakeAWS()
			d, _ := newDriver(t, f, Config{})
			rec := plan(t, d, "c", arn1)
			f.after = die(n)
			survived := survive(t, func() error { return d.Grant(context.Background(), "c", rec) })
			f.after = nil
			next, _ := newDriver(t, f, Config{})
			if alsoGrant {
				mustGrant(t, next, "c", rec)
				mustWork(t, f, "c")
			}
			mustRevoke(t, next, "c", rec)
			f.mustBeEmpty(t)
			if survived {
				mustEqual(t, "calls of a grant", n, len(firstGrant)+1)
				return
			}
		}
	}
}

func TestCrash_AfterEachCallOfARepair(t *testing.T) {
	for n := 1; ; n++ {
		f := newFakeAWS()
		d, clk := newDriver(t, f, Config{})
		rec := plan(t, d, "c", arn1)
		mustGrant(t, d, "c", rec)
		clk.pass(time.Hour)
		// Everything has drifted that can.
		r := f.roles[role1]
		r.id, r.created, r.trust, r.policies = "AROAOTHER", f.now(), "{}", map[string]string{}
		delete(r.tags, "hub_cluster_name")
		f.after = die(n)
		survived := survive(t, func() error { return d.Grant(context.Background(), "c", rec) })
		f.after = nil
		next, _ := newDriver(t, f, Config{})
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
			f := newFakeAWS()
			d, _ := newDriver(t, f, Config{})
			rec := plan(t, d, "c", arn1)
			mustGrant(t, d, "c", rec)
			f.roles[role1].policies["more"], f.roles[role1].attached = "{}", []string{"arn:aws:iam::aws:policy/X"}
			f.after = die(n)
			survived := survive(t, func() error { return d.Revoke(context.Background(), "c", rec) })
			if n >= slices.Index(lastRevoke, "UpdateAssumeRolePolicy")+1 && f.roles[role1] != nil && !irsa.Equivalent(f.roles[role1].trust, irsa.NoTrustPolicy().JSON()) {
				t.Errorf("after %d calls the role can still be assumed", n)
			}
			f.after = nil
			next, _ := newDriver(t, f, Config{})
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

func TestFailure_OfEachCallIsMadeGoodByTheNextTry(t *testing.T) {
	throttled := &smithy.GenericAPIError{Code: "Throttling"}
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
			f := newFakeAWS()
			d, clk := newDriver(t, f, Config{})
			rec := plan(t, d, "c", arn1)
			if do.name == "revoke" {
				mustGrant(t, d, "c", rec)
				clk.pass(time.Hour)
			}
			f.before = failing(name, throttled)
			if err := do.run(d)(t.Context(), "c", rec); !errors.Is(err, throttled) || errors.Is(err, driver.ErrTerminal) {
				t.Errorf("%s, %s: got %v", do.name, name, err)
			}
			f.before = nil
			if err := do.run(d)(t.Context(), "c", rec); err != nil {
				t.Errorf("%s, %s: %v", do.name, name, err)
			}
			mustRevoke(t, d, "c", rec)
			f.mustBeEmpty(t)
		}
	}
}

func TestRevoke_OfARoleThatCannotBeSeenYetIsTriedAgain(t *testing.T) {
	f := newFakeAWS()
	d, clk := newDriver(t, f, Config{})
	rec := plan(t, d, "c", arn1)
	mustGrant(t, d, "c", rec)
	f.before = failing("GetRole", &iamtypes.NoSuchEntityException{})
	if err := d.Revoke(t.Context(), "c", rec); err == nil || errors.Is(err, driver.ErrTerminal) {
		t.Errorf("got %v", err)
	}
	f.before = nil
	mustRevoke(t, d, "c", rec)
	f.mustBeEmpty(t)
	// A role that others have deleted holds up nothing.
	mustGrant(t, d, "c", rec)
	delete(f.roles, role1)
	clk.pass(2 * time.Minute)
	mustRevoke(t, d, "c", rec)
	f.mustBeEmpty(t)
}

// A process does not know what the one before it made a moment ago, and IAM may not show.
func TestRevoke_ByANewProcessLeavesNothingThatIAMDoesNotShowYet(t *testing.T) {
	f := newFakeAWS()
	before, _ := newDriver(t, f, Config{})
	rec := plan(t, before, "c", arn1)
	mustGrant(t, before, "c", rec)
	f.roles[role1].unseen = true
	d, clk := newDriver(t, f, Config{})
	d.settle = newSettling(clk)
	if err := d.Revoke(t.Context(), "c", rec); err == nil || errors.Is(err, driver.ErrTerminal) {
		t.Errorf("got %v", err)
	}
	if len(f.entries) > 0 {
		t.Error("the access is left")
	}
	f.roles[role1].unseen = false
	mustRevoke(t, d, "c", rec)
	f.mustBeEmpty(t)
	clk.pass(2 * settleTime)
	mustRevoke(t, d, "c", rec)
}
