// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

var (
	firstGrant = []string{"GetRole", "CreateRole", "PutRolePolicy", "CreateAccessEntry"}
	reads      = slices.Concat([]string{"GetRole", "GetRolePolicy"}, more)
	// more are the reads of a check after that of the role's own policy.
	more = []string{"ListRolePolicies", "ListAttachedRolePolicies", "DescribeAccessEntry", "ListAssociatedAccessPolicies"}
)

func TestGrant_FourCallsThenReadsOnly(t *testing.T) {
	f := newHubAWS(t)
	d, _ := newDriver(t, f, Options{Tags: map[string]string{"team": "a"}})
	rec := f.plan(d, "c", arn1)
	mustGrant(t, d, "c", rec)
	mustEqual(t, "first", f.taken(), firstGrant)
	mustWork(t, f, "c")
	role, _ := f.role()
	entry, _ := f.entry()
	tags := map[string]string{
		"hub_cluster_account_id": "123456789012", "hub_cluster_name": "hub-cluster1",
		"managed_cluster_account_id": "123456789012", "managed_cluster_name": "managed-cluster1",
		"clusterhub.dev/managed-cluster": "c", "clusterhub.dev/hub-cluster-arn": hubARN, "team": "a",
	}
	mustEqual(t, "tags of the role", role.Tags, tags)
	mustEqual(t, "tags of the entry", entry.Tags, tags)

	mustGrant(t, d, "c", rec)
	mustEqual(t, "second", f.taken(), reads)
	again, _ := newDriver(t, f, Options{Tags: map[string]string{"team": "a"}})
	mustGrant(t, again, "c", rec)
	mustEqual(t, "after a restart", f.taken(), reads)
}

// onRole and onEntry are changes by others of the role of a cluster, and of its access entry.
func onRole(change func(*fakeaws.Role)) func(*hubAWS) {
	return func(f *hubAWS) { f.changeRole(change) }
}
func onEntry(change func(*fakeaws.AccessEntry)) func(*hubAWS) {
	return func(f *hubAWS) { f.changeEntry(change) }
}

func TestGrant_RepairsDrift(t *testing.T) {
	for name, test := range map[string]struct {
		drift func(*hubAWS)
		calls []string
	}{
		"the trust policy": {
			onRole(func(r *fakeaws.Role) { r.Trust = strings.ReplaceAll(r.Trust, "managed-cluster1", "x") }),
			slices.Concat([]string{"GetRole", "UpdateAssumeRolePolicy", "GetRolePolicy"}, more),
		},
		"the principal, which has been deleted and made again": {
			func(f *hubAWS) {
				f.account.RemoveRole("ocm-managed-cluster-" + suffix1)
				f.join(arn1)
			},
			slices.Concat([]string{"GetRole", "UpdateAssumeRolePolicy", "GetRolePolicy"}, more),
		},
		"the access policy": {
			onRole(func(r *fakeaws.Role) { r.Policies[role1] = fakeaws.AllowAll }),
			slices.Concat([]string{"GetRole", "GetRolePolicy", "PutRolePolicy"}, more),
		},
		"no access policy": {
			onRole(func(r *fakeaws.Role) { delete(r.Policies, role1) }),
			slices.Concat([]string{"GetRole", "GetRolePolicy", "PutRolePolicy"}, more),
		},
		"a tag of the role": {
			onRole(func(r *fakeaws.Role) { delete(r.Tags, "hub_cluster_name") }),
			slices.Concat([]string{"GetRole", "TagRole", "GetRolePolicy"}, more),
		},
		"no role": {
			(*hubAWS).removeRole,
			// The entry is for an earlier role: it does not give access to the new one.
			[]string{"GetRole", "CreateRole", "PutRolePolicy", "CreateAccessEntry", "DescribeAccessEntry", "DeleteAccessEntry", "CreateAccessEntry"},
		},
		"a role made again by hand, with our tags": {
			func(f *hubAWS) { f.remakeRole(func(*fakeaws.Role) {}) },
			append(slices.Clone(reads[:5]), "DeleteAccessEntry", "CreateAccessEntry"),
		},
		"no entry": {
			(*hubAWS).removeEntry,
			append(slices.Clone(reads[:5]), "CreateAccessEntry"),
		},
		"the user": {
			onEntry(func(e *fakeaws.AccessEntry) { e.Username = "admin" }),
			append(slices.Clone(reads[:5]), "UpdateAccessEntry", "ListAssociatedAccessPolicies"),
		},
		"the groups": {
			onEntry(func(e *fakeaws.AccessEntry) { e.KubernetesGroups = append(e.KubernetesGroups, "masters") }),
			append(slices.Clone(reads[:5]), "UpdateAccessEntry", "ListAssociatedAccessPolicies"),
		},
		"a tag of the entry": {
			onEntry(func(e *fakeaws.AccessEntry) { e.Tags["hub_cluster_name"] = "x" }),
			append(slices.Clone(reads), "TagResource"),
		},
		"an entry without tags": {
			onEntry(func(e *fakeaws.AccessEntry) { e.Tags = nil }),
			append(slices.Clone(reads), "TagResource"),
		},
		"an entry with half of the tags that say whose it is": {
			onEntry(func(e *fakeaws.AccessEntry) { delete(e.Tags, irsa.TagOwnerHub) }),
			append(slices.Clone(reads), "TagResource"),
		},
		"an entry for nodes": {
			onEntry(func(e *fakeaws.AccessEntry) { e.Type = "EC2_LINUX" }),
			append(slices.Clone(reads[:5]), "DeleteAccessEntry", "CreateAccessEntry"),
		},
		"nothing but the order of a policy": {
			onRole(func(r *fakeaws.Role) {
				r.Policies[role1] = strings.Replace(r.Policies[role1], `"eks:DescribeCluster","eks:ListClusters"`, `"eks:ListClusters","eks:DescribeCluster"`, 1)
			}),
			reads,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newHubAWS(t)
			d, clk := newDriver(t, f, Options{})
			rec := f.plan(d, "c", arn1)
			mustGrant(t, d, "c", rec)
			f.anHour(clk)
			f.taken()
			test.drift(f)
			mustGrant(t, d, "c", rec)
			mustEqual(t, "calls", f.taken(), test.calls)
			mustWork(t, f, "c")
			mustGrant(t, d, "c", rec)
			mustEqual(t, "calls of the next", f.taken(), reads)
			mustRevoke(t, d, "c", rec)
			f.mustBeEmpty(t)
		})
	}
}

func TestGrant_NeverSharesRoles(t *testing.T) {
	others := map[string]struct {
		change func(*fakeaws.Role)
		want   string
	}{
		"a second ManagedCluster with the ARN": {func(*fakeaws.Role) {}, `belongs to the ManagedCluster "a"`},
		"another hub":                          {func(r *fakeaws.Role) { r.Tags[irsa.TagOwnerHub] = hubARN + "-2" }, `of another hub, ` + hubARN + "-2"},
		"somebody who tags nothing":            {func(r *fakeaws.Role) { r.Tags = nil }, "delete it, or tag it with clusterhub.dev/managed-cluster=b"},
		"a hub that tags no cluster":           {func(r *fakeaws.Role) { delete(r.Tags, irsa.TagOwner) }, "was not created by this hub"},
	}
	for name, test := range others {
		t.Run(name, func(t *testing.T) {
			f := newHubAWS(t)
			d, clk := newDriver(t, f, Options{})
			mustGrant(t, d, "a", f.plan(d, "a", arn1))
			f.changeRole(test.change)
			f.taken()
			// Also while the first is settling.
			for range 2 {
				err := d.Grant(t.Context(), "b", f.plan(d, "b", arn1))
				if !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("want %q, got %v", test.want, err)
				}
				mustEqual(t, "calls", f.taken(), []string{"GetRole"})
				clk.pass(time.Hour)
			}
			// Revoking it does not fail because of what it never had, and revokes nothing.
			mustRevoke(t, d, "b", f.plan(d, "b", arn1))
			mustWork(t, f, "a")
			mustEqual(t, "calls", f.taken(), []string{"GetRole", "DescribeAccessEntry"})
		})
	}
}

func TestGrant_DistinguishesRegions(t *testing.T) {
	// The names of roles are not different: the hash of the specification has no region.
	f := newHubAWS(t)
	d, _ := newDriver(t, f, Options{})
	mustGrant(t, d, "a", f.plan(d, "a", arn1))
	err := d.Grant(t.Context(), "b", f.plan(d, "b", strings.Replace(arn1, "us-west-2", "eu-west-1", 1)))
	if !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "has the account and the name of") {
		t.Error(err)
	}
}

func TestGrant_NeverAdoptsForeignEntry(t *testing.T) {
	for name, change := range map[string]func(*fakeaws.AccessEntry){
		"by its tags":      func(e *fakeaws.AccessEntry) { e.Tags[irsa.TagOwner] = "a" },
		"by its hub":       func(e *fakeaws.AccessEntry) { e.Tags[irsa.TagOwnerHub] = hubARN + "-2" },
		"by its user name": func(e *fakeaws.AccessEntry) { e.Tags, e.Username = nil, "open-cluster-management:a" },
		// Entries of Open Cluster Management, and of an admin.
		"of another hub's driver": func(e *fakeaws.AccessEntry) { e.Tags, e.Username = nil, "b" },
		"of an admin": func(e *fakeaws.AccessEntry) {
			e.Tags, e.Username, e.KubernetesGroups = map[string]string{"team": "x"}, "admin", []string{"admins"}
		},
		"of a longer name": func(e *fakeaws.AccessEntry) { e.Tags, e.Username = nil, "open-cluster-management:b:x" },
		"of nobody":        func(e *fakeaws.AccessEntry) { e.Tags, e.Username = nil, "" },
	} {
		f := newHubAWS(t)
		d, _ := newDriver(t, f, Options{})
		rec := f.plan(d, "b", arn1)
		mustGrant(t, d, "b", rec)
		f.changeEntry(change)
		f.taken()
		if err := d.Grant(t.Context(), "b", rec); !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "belongs to the ManagedCluster") && !strings.Contains(err.Error(), "was not created by this hub") {
			t.Errorf("%s: got %v", name, err)
		}
		mustEqual(t, name, f.taken(), reads[:5])
		mustRevoke(t, d, "b", rec)
		if entries, roles := f.entries(), f.hubRoles(); len(entries) != 1 || len(roles) != 0 {
			t.Errorf("%s: %d entries and %d roles are left", name, len(entries), len(roles))
		}
	}
}

func TestGrant_DoesNotWaitForNewRole(t *testing.T) {
	// EKS and IAM do not see a new role for some seconds. Each try ends at once, and costs one call.
	f := newHubAWS(t)
	d, _ := newDriver(t, f, Options{})
	rec := f.plan(d, "c", arn1)
	f.DelayVisibility(0, time.Minute)
	for range 3 {
		err := d.Grant(t.Context(), "c", rec)
		if err == nil || errors.Is(err, driver.ErrTerminal) {
			t.Fatal(err)
		}
		mustEqual(t, "error", err.Error(), "EKS CreateAccessEntry "+role1+
			": InvalidParameterException: The specified principalArn is invalid: invalid principal.")
	}
	// A revocation at this time must not assume that the role does not exist.
	if err := d.Revoke(t.Context(), "c", rec); err == nil || errors.Is(err, driver.ErrTerminal) {
		t.Errorf("a role that cannot be seen yet is left behind: %v", err)
	}
	f.Age(time.Minute)
	f.taken()
	mustGrant(t, d, "c", rec)
	mustEqual(t, "calls", f.taken(), []string{"CreateAccessEntry"})
	mustWork(t, f, "c")
	mustGrant(t, d, "c", rec)
	mustEqual(t, "calls", f.taken(), reads)
}

func TestGrant_RereadsAfterDelay(t *testing.T) {
	f := newHubAWS(t)
	d, clk := newDriver(t, f, Options{})
	rec := f.plan(d, "c", arn1)
	mend := f.failing("CreateAccessEntry", "InvalidParameterException", "")
	if err := d.Grant(t.Context(), "c", rec); err == nil {
		t.Fatal("no error")
	}
	mend()
	f.removeRole()
	clk.pass(2 * time.Minute)
	mustGrant(t, d, "c", rec)
	mustWork(t, f, "c")
}

func TestGrant_RecentlyDeletedRoleIsNotTrusted(t *testing.T) {
	f := newHubAWS(t)
	d, clk := newDriver(t, f, Options{})
	rec := f.plan(d, "c", arn1)
	mustGrant(t, d, "c", rec)
	ghost, _ := f.role()
	mustRevoke(t, d, "c", rec)
	must(f.account.AddRole(ghost))(t)
	if err := d.Grant(t.Context(), "c", rec); err == nil || errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "was just deleted") {
		t.Errorf("got %v", err)
	}
	f.removeRole()
	mustGrant(t, d, "c", rec)
	mustWork(t, f, "c")
	clk.pass(time.Hour)
	mustGrant(t, d, "c", rec)
}

func TestGrant_RejectsCredentialsOfOtherAccount(t *testing.T) {
	f := newHubAWS(t)
	others := f.config
	others.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		found, err := f.config.Credentials.Retrieve(ctx)
		found.AccountID = "999999999999"
		return found, err
	})
	d, _ := newDriver(t, f, Options{AWS: others})
	err := d.Grant(t.Context(), "c", f.plan(d, "c", arn1))
	if !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "for the AWS account 999999999999") {
		t.Error(err)
	}
	f.mustBeEmpty(t)
}

func TestGrant_ManyClustersConcurrently(t *testing.T) {
	f := newHubAWS(t)
	d, _ := newDriver(t, f, Options{})
	var wg sync.WaitGroup
	for i := range 50 {
		name := fmt.Sprintf("c%d", i)
		rec := f.plan(d, name, arn1+name)
		wg.Go(func() {
			for _, do := range []func() error{
				func() error { return d.Grant(context.Background(), name, rec) },
				func() error { return d.Revoke(context.Background(), name, rec) },
			} {
				if err := do(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	f.mustBeEmpty(t)
}

func TestGrant_DistinguishesTransientErrors(t *testing.T) {
	for name, test := range map[string]struct {
		call, code, message string
		terminal            bool
		text                string
	}{
		"throttling":           {"GetRole", "Throttling", "so it is", false, "IAM GetRole " + role1 + ": Throttling: so it is"},
		"throttling by EKS":    {"CreateAccessEntry", "Throttling", "", false, ""},
		"a fault of AWS":       {"CreateRole", "ServiceFailure", "", false, ""},
		"two writers":          {"CreateRole", "ConcurrentModification", "", false, ""},
		"a race":               {"CreateRole", "EntityAlreadyExists", "", false, ""},
		"a role unseen by put": {"PutRolePolicy", "NoSuchEntity", "", false, ""},
		"a principal unseen": {"CreateRole", "MalformedPolicyDocument", "Invalid principal in policy", false,
			"the managed cluster's role arn:aws:iam::123456789012:role/ocm-managed-cluster-" + suffix1 + " must exist first"},
		"a right missing in IAM": {"CreateRole", "AccessDenied", "", true, ""},
		"a right missing in EKS": {"CreateAccessEntry", "AccessDenied", "", true, ""},
		"no access entries":      {"CreateAccessEntry", "InvalidRequestException", "", true, ""},
		"no such hub":            {"CreateAccessEntry", "ResourceNotFoundException", "", true, ""},
		"too many roles":         {"CreateRole", "LimitExceeded", "", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newHubAWS(t)
			d, _ := newDriver(t, f, Options{})
			rec := f.plan(d, "c", arn1)
			mend := f.failing(test.call, test.code, test.message)
			err := d.Grant(t.Context(), "c", rec)
			if err == nil || errors.Is(err, driver.ErrTerminal) != test.terminal || !strings.Contains(err.Error(), test.text) {
				t.Fatalf("got %v", err)
			}
			// EKS has a different name for an error that all services have.
			var cause smithy.APIError
			if !errors.As(err, &cause) || strings.TrimSuffix(cause.ErrorCode(), "Exception") != strings.TrimSuffix(test.code, "Exception") {
				t.Errorf("its cause is lost: %v", cause)
			}
			mend()
			mustGrant(t, d, "c", rec)
			mustWork(t, f, "c")
		})
	}
}
