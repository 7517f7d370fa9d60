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
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/smithy-go"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/irsa"
)

var (
	firstGrant = []string{"GetRole", "CreateRole", "PutRolePolicy", "CreateAccessEntry"}
	reads      = slices.Concat([]string{"GetRole", "GetRolePolicy"}, more)
	// more is what a check reads after the role's own policy.
	more = []string{"ListRolePolicies", "ListAttachedRolePolicies", "DescribeAccessEntry", "ListAssociatedAccessPolicies"}
)

// mustWork fails unless the agent of the cluster can become the role, and comes in as the cluster.
func mustWork(t *testing.T, f *fakeAWS, cluster string) {
	t.Helper()
	hub, _ := irsa.ParseClusterARN(hubARN)
	managed, _ := irsa.ParseClusterARN(arn1)
	identity, _ := irsa.NewIdentity(hub, managed)
	r, e := f.roles[role1], f.entries[role1AR]
	if r == nil || e == nil {
		t.Fatalf("role %v, entry %v", r, e)
	}
	if !irsa.Equivalent(r.trust, identity.HubTrustPolicy().JSON()) {
		t.Errorf("the trust policy is %s", r.trust)
	}
	if !irsa.Equivalent(r.policies[role1], identity.HubAccessPolicy().JSON()) {
		t.Errorf("the access policy is %v", r.policies)
	}
	if e.roleID != r.id {
		t.Errorf("EKS knows the role by the ID %s, which is %s", e.roleID, r.id)
	}
	mustEqual(t, "user", *e.Username, "open-cluster-management:"+cluster)
	mustEqual(t, "groups", e.KubernetesGroups, []string{"open-cluster-management:" + cluster, "open-cluster-management:managed-clusters"})
	mustEqual(t, "cluster", *e.ClusterName, "hub-cluster1")
}

func TestGrant_IsFourCallsAndThenReadsOnly(t *testing.T) {
	f := newFakeAWS()
	d, _ := newDriver(t, f, Config{Tags: map[string]string{"team": "a"}})
	rec := plan(t, d, "c", arn1)
	mustGrant(t, d, "c", rec)
	mustEqual(t, "first", f.taken(), firstGrant)
	mustWork(t, f, "c")
	tags := map[string]string{
		"hub_cluster_account_id": "123456789012", "hub_cluster_name": "hub-cluster1",
		"managed_cluster_account_id": "123456789012", "managed_cluster_name": "managed-cluster1",
		"clusterhub.dev/managed-cluster": "c", "clusterhub.dev/hub-cluster-arn": hubARN, "team": "a",
	}
	mustEqual(t, "tags of the role", f.roles[role1].tags, tags)
	mustEqual(t, "tags of the entry", f.entries[role1AR].Tags, tags)

	mustGrant(t, d, "c", rec)
	mustEqual(t, "second", f.taken(), reads)
	again, _ := newDriver(t, f, Config{Tags: map[string]string{"team": "a"}})
	mustGrant(t, again, "c", rec)
	mustEqual(t, "after a restart", f.taken(), reads)
}

func TestGrant_RepairsWhatHasDrifted(t *testing.T) {
	for name, test := range map[string]struct {
		drift func(*fakeAWS)
		calls []string
	}{
		"the trust policy": {
			func(f *fakeAWS) {
				f.roles[role1].trust = strings.ReplaceAll(f.roles[role1].trust, "managed-cluster1", "x")
			},
			slices.Concat([]string{"GetRole", "UpdateAssumeRolePolicy", "GetRolePolicy"}, more),
		},
		"the principal, which has been deleted and made again": {
			func(f *fakeAWS) {
				f.roles[role1].trust = strings.ReplaceAll(f.roles[role1].trust, "arn:aws:iam::123456789012:role/ocm-managed-cluster-"+suffix1, "AROAX")
			},
			slices.Concat([]string{"GetRole", "UpdateAssumeRolePolicy", "GetRolePolicy"}, more),
		},
		"the access policy": {
			func(f *fakeAWS) { f.roles[role1].policies[role1] = `{"Statement":{"Effect":"Allow","Action":"*"}}` },
			slices.Concat([]string{"GetRole", "GetRolePolicy", "PutRolePolicy"}, more),
		},
		"no access policy": {
			func(f *fakeAWS) { delete(f.roles[role1].policies, role1) },
			slices.Concat([]string{"GetRole", "GetRolePolicy", "PutRolePolicy"}, more),
		},
		"a tag of the role": {
			func(f *fakeAWS) { delete(f.roles[role1].tags, "hub_cluster_name") },
			slices.Concat([]string{"GetRole", "TagRole", "GetRolePolicy"}, more),
		},
		"no role": {
			func(f *fakeAWS) { delete(f.roles, role1) },
			// The entry is of the role that was: it lets the new one in no more than any other.
			[]string{"GetRole", "CreateRole", "PutRolePolicy", "CreateAccessEntry", "DescribeAccessEntry", "DeleteAccessEntry", "CreateAccessEntry"},
		},
		"a role made again by hand, with our tags": {
			func(f *fakeAWS) { f.roles[role1].id, f.roles[role1].created = "AROAOTHER", f.now() },
			append(slices.Clone(reads[:5]), "DeleteAccessEntry", "CreateAccessEntry"),
		},
		"no entry": {
			func(f *fakeAWS) { delete(f.entries, role1AR) },
			append(slices.Clone(reads[:5]), "CreateAccessEntry"),
		},
		"the user": {
			func(f *fakeAWS) { f.entries[role1AR].Username = aws.String("admin") },
			append(slices.Clone(reads[:5]), "UpdateAccessEntry", "ListAssociatedAccessPolicies"),
		},
		"the groups": {
			func(f *fakeAWS) {
				f.entries[role1AR].KubernetesGroups = append(f.entries[role1AR].KubernetesGroups, "masters")
			},
			append(slices.Clone(reads[:5]), "UpdateAccessEntry", "ListAssociatedAccessPolicies"),
		},
		"a tag of the entry": {
			func(f *fakeAWS) { f.entries[role1AR].Tags["hub_cluster_name"] = "x" },
			append(slices.Clone(reads), "TagResource"),
		},
		"an entry without tags": {
			func(f *fakeAWS) { f.entries[role1AR].Tags = map[string]string{} },
			append(slices.Clone(reads), "TagResource"),
		},
		"an entry with half of the tags that say whose it is": {
			func(f *fakeAWS) { delete(f.entries[role1AR].Tags, irsa.TagOwnerHub) },
			append(slices.Clone(reads), "TagResource"),
		},
		"an entry for nodes": {
			func(f *fakeAWS) { f.entries[role1AR].Type = aws.String("EC2_LINUX") },
			append(slices.Clone(reads[:5]), "DeleteAccessEntry", "CreateAccessEntry"),
		},
		"nothing but the order of a policy": {
			func(f *fakeAWS) {
				f.roles[role1].policies[role1] = strings.Replace(f.roles[role1].policies[role1],
					`"eks:DescribeCluster","eks:ListClusters"`, `"eks:ListClusters","eks:DescribeCluster"`, 1)
			},
			reads,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeAWS()
			d, clk := newDriver(t, f, Config{})
			rec := plan(t, d, "c", arn1)
			mustGrant(t, d, "c", rec)
			clk.pass(time.Hour)
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

func TestGrant_NeverSharesTheRoleOfAnother(t *testing.T) {
	others := map[string]struct {
		change func(*fakeAWS)
		want   string
	}{
		"a second ManagedCluster with the ARN": {func(*fakeAWS) {}, `belongs to the ManagedCluster "a"`},
		"another hub":                          {func(f *fakeAWS) { f.roles[role1].tags[irsa.TagOwnerHub] = hubARN + "-2" }, `of another hub, ` + hubARN + "-2"},
		"somebody who tags nothing":            {func(f *fakeAWS) { f.roles[role1].tags = nil }, "delete it, or tag it with clusterhub.dev/managed-cluster=b"},
		"a hub that tags no cluster":           {func(f *fakeAWS) { delete(f.roles[role1].tags, irsa.TagOwner) }, "was not made by this hub"},
	}
	for name, test := range others {
		t.Run(name, func(t *testing.T) {
			f := newFakeAWS()
			d, clk := newDriver(t, f, Config{})
			mustGrant(t, d, "a", plan(t, d, "a", arn1))
			test.change(f)
			f.taken()
			// Also while the first is settling.
			for range 2 {
				err := d.Grant(t.Context(), "b", plan(t, d, "b", arn1))
				if !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("want %q, got %v", test.want, err)
				}
				mustEqual(t, "calls", f.taken(), []string{"GetRole"})
				clk.pass(time.Hour)
			}
			// Its end is not held up by what it never had, and takes nothing.
			mustRevoke(t, d, "b", plan(t, d, "b", arn1))
			mustWork(t, f, "a")
			mustEqual(t, "calls", f.taken(), []string{"GetRole", "DescribeAccessEntry"})
		})
	}
}

func TestGrant_TellsRegionsApart(t *testing.T) {
	// The names of roles do not: the hash of the specification has no region.
	f := newFakeAWS()
	d, _ := newDriver(t, f, Config{})
	mustGrant(t, d, "a", plan(t, d, "a", arn1))
	err := d.Grant(t.Context(), "b", plan(t, d, "b", strings.Replace(arn1, "us-west-2", "eu-west-1", 1)))
	if !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "has the account and the name of") {
		t.Error(err)
	}
}

func TestGrant_NeverTakesTheEntryOfAnother(t *testing.T) {
	for name, change := range map[string]func(e *fakeEntry){
		"by its tags":      func(e *fakeEntry) { e.Tags[irsa.TagOwner] = "a" },
		"by its hub":       func(e *fakeEntry) { e.Tags[irsa.TagOwnerHub] = hubARN + "-2" },
		"by its user name": func(e *fakeEntry) { e.Tags, e.Username = nil, aws.String("open-cluster-management:a") },
		// Open Cluster Management's own, and one that an admin has made.
		"of another hub's driver": func(e *fakeEntry) { e.Tags, e.Username = nil, aws.String("b") },
		"of an admin": func(e *fakeEntry) {
			e.Tags, e.Username, e.KubernetesGroups = map[string]string{"team": "x"}, aws.String("admin"), []string{"admins"}
		},
		"of a longer name": func(e *fakeEntry) { e.Tags, e.Username = nil, aws.String("open-cluster-management:b:x") },
		"of nobody":        func(e *fakeEntry) { e.Tags, e.Username = nil, nil },
	} {
		f := newFakeAWS()
		d, _ := newDriver(t, f, Config{})
		rec := plan(t, d, "b", arn1)
		mustGrant(t, d, "b", rec)
		change(f.entries[role1AR])
		f.taken()
		if err := d.Grant(t.Context(), "b", rec); !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "belongs to the ManagedCluster") && !strings.Contains(err.Error(), "was not made by this hub") {
			t.Errorf("%s: got %v", name, err)
		}
		mustEqual(t, name, f.taken(), reads[:5])
		mustRevoke(t, d, "b", rec)
		if len(f.entries) != 1 || len(f.roles) != 0 {
			t.Errorf("%s: %d entries and %d roles are left", name, len(f.entries), len(f.roles))
		}
	}
}

func TestGrant_WaitsForNobody(t *testing.T) {
	// EKS and IAM do not see a new role for some seconds. Each try ends at once, and costs one call.
	f := newFakeAWS()
	d, _ := newDriver(t, f, Config{})
	rec := plan(t, d, "c", arn1)
	f.after = func(call string) {
		if call == "CreateRole" {
			f.roles[role1].unseen = true
		}
	}
	for range 3 {
		err := d.Grant(t.Context(), "c", rec)
		if err == nil || errors.Is(err, driver.ErrTerminal) {
			t.Fatal(err)
		}
		mustEqual(t, "error", err.Error(), "EKS CreateAccessEntry "+role1+
			": InvalidParameterException: The specified principalArn is invalid: invalid principal.")
	}
	// Who ends now must not be told that there is no role.
	if err := d.Revoke(t.Context(), "c", rec); err == nil || errors.Is(err, driver.ErrTerminal) {
		t.Errorf("a role that cannot be seen yet is left behind: %v", err)
	}
	f.roles[role1].unseen = false
	f.taken()
	mustGrant(t, d, "c", rec)
	mustEqual(t, "calls", f.taken(), []string{"CreateAccessEntry"})
	mustWork(t, f, "c")
	mustGrant(t, d, "c", rec)
	mustEqual(t, "calls", f.taken(), reads)
}

func TestGrant_LooksAgainWhenItHasTakenTooLong(t *testing.T) {
	f := newFakeAWS()
	d, clk := newDriver(t, f, Config{})
	rec := plan(t, d, "c", arn1)
	f.before = failing("CreateAccessEntry", &ekstypes.InvalidParameterException{})
	if err := d.Grant(t.Context(), "c", rec); err == nil {
		t.Fatal("no error")
	}
	f.before = nil
	delete(f.roles, role1)
	clk.pass(2 * time.Minute)
	mustGrant(t, d, "c", rec)
	mustWork(t, f, "c")
}

func TestGrant_DoesNotTrustARoleThatWasDeletedAMomentAgo(t *testing.T) {
	f := newFakeAWS()
	d, clk := newDriver(t, f, Config{})
	rec := plan(t, d, "c", arn1)
	mustGrant(t, d, "c", rec)
	ghost := f.roles[role1]
	mustRevoke(t, d, "c", rec)
	f.roles[role1] = ghost
	if err := d.Grant(t.Context(), "c", rec); err == nil || errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "deleted a moment ago") {
		t.Errorf("got %v", err)
	}
	delete(f.roles, role1)
	mustGrant(t, d, "c", rec)
	mustWork(t, f, "c")
	clk.pass(time.Hour)
	mustGrant(t, d, "c", rec)
}

func TestGrant_RefusesCredentialsOfAnotherAccount(t *testing.T) {
	f := newFakeAWS()
	d, _ := newDriver(t, f, Config{}, func(d *Driver) {
		d.account = func(context.Context) (string, error) { return "999999999999", nil }
	})
	err := d.Grant(t.Context(), "c", plan(t, d, "c", arn1))
	if !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "of the AWS account 999999999999") {
		t.Error(err)
	}
	f.mustBeEmpty(t)
}

func TestGrant_OfManyClustersAtOnce(t *testing.T) {
	f := newFakeAWS()
	d, _ := newDriver(t, f, Config{})
	var wg sync.WaitGroup
	for i := range 50 {
		name := fmt.Sprintf("c%d", i)
		rec := plan(t, d, name, arn1+name)
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

// failing fails every call of one name.
func failing(name string, err error) func(string) error {
	return func(call string) error {
		if call == name {
			return err
		}
		return nil
	}
}

func TestGrant_TellsWhatPassesFromWhatDoesNot(t *testing.T) {
	api := func(code string) error { return &smithy.GenericAPIError{Code: code, Message: "so it is"} }
	for name, test := range map[string]struct {
		call     string
		err      error
		terminal bool
		text     string
	}{
		"throttling":           {"GetRole", api("Throttling"), false, "IAM GetRole " + role1 + ": Throttling: so it is"},
		"throttling by EKS":    {"CreateAccessEntry", &ekstypes.ThrottlingException{}, false, ""},
		"a fault of AWS":       {"CreateRole", &iamtypes.ServiceFailureException{}, false, ""},
		"two writers":          {"PutRolePolicy", &iamtypes.ConcurrentModificationException{}, false, ""},
		"a race":               {"CreateRole", &iamtypes.EntityAlreadyExistsException{}, false, ""},
		"a role unseen by put": {"PutRolePolicy", &iamtypes.NoSuchEntityException{}, false, ""},
		"a principal unseen": {"CreateRole", &iamtypes.MalformedPolicyDocumentException{Message: aws.String("Invalid principal in policy")}, false,
			"the managed cluster's role arn:aws:iam::123456789012:role/ocm-managed-cluster-" + suffix1 + " has to be there first"},
		"a right missing in IAM": {"CreateRole", api("AccessDenied"), true, ""},
		"a right missing in EKS": {"CreateAccessEntry", &ekstypes.AccessDeniedException{}, true, ""},
		"no access entries":      {"CreateAccessEntry", &ekstypes.InvalidRequestException{}, true, ""},
		"no such hub":            {"CreateAccessEntry", &ekstypes.ResourceNotFoundException{}, true, ""},
		"too many roles":         {"CreateRole", &iamtypes.LimitExceededException{}, true, ""},
		"a text of many lines":   {"GetRole", &smithy.GenericAPIError{Code: "X", Message: "a\nb\t c"}, false, ": X: a b c"},
		"no network":             {"GetRole", fmt.Errorf("https response error StatusCode: 0, RequestID: , %w", errors.New("dial tcp: refused")), false, "GetRole " + role1 + ": dial tcp: refused"},
		"no answer":              {"GetRole", context.DeadlineExceeded, false, "AWS did not answer in time"},
		"no credentials": {"GetRole", fmt.Errorf("get identity: %w", &smithy.OperationError{ServiceID: "STS", OperationName: "AssumeRoleWithWebIdentity",
			Err: api("AccessDenied")}), true, "IAM GetRole " + role1 + ": STS AssumeRoleWithWebIdentity: AccessDenied: so it is"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeAWS()
			d, _ := newDriver(t, f, Config{})
			rec := plan(t, d, "c", arn1)
			f.before = failing(test.call, test.err)
			err := d.Grant(t.Context(), "c", rec)
			if err == nil || errors.Is(err, driver.ErrTerminal) != test.terminal || !strings.Contains(err.Error(), test.text) {
				t.Fatalf("got %v", err)
			}
			if !errors.Is(err, test.err) {
				t.Error("its cause is lost")
			}
			f.before = nil
			mustGrant(t, d, "c", rec)
			mustWork(t, f, "c")
		})
	}
}
