// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

// hubAWS is the AWS account of a hub that may do everything in it. It shows which calls the driver makes, in their order; world shows whether it
// has the permissions for them.
type hubAWS struct {
	*fakeaws.Server
	t       *testing.T
	account *fakeaws.Account
	config  aws.Config
}

func newHubAWS(t *testing.T) *hubAWS {
	t.Helper()
	hub := must(irsa.ParseClusterARN(hubARN))(t)
	f := &hubAWS{Server: must(fakeaws.Start(1))(t), t: t}
	t.Cleanup(f.Close)
	f.account = must(f.AddAccount(hub.Account, hub.Region))(t)
	f.account.AddCluster(fakeaws.Cluster{Name: hub.Name})
	f.config = f.account.Config(f.account.Root()) // which does not retry, so that all calls are the driver's
	return f
}

// join creates the role of an EKS cluster's agent, as its admin does beforehand.
func (f *hubAWS) join(arn string) {
	f.t.Helper()
	identity := must(irsa.NewIdentity(must(irsa.ParseClusterARN(hubARN))(f.t), must(irsa.ParseClusterARN(arn))(f.t)))(f.t)
	if _, there := f.account.Roles()[identity.ManagedRole()]; !there {
		must(f.account.AddRole(fakeaws.Role{Name: identity.ManagedRole(), Trust: irsa.NoTrustPolicy().JSON()}))(f.t)
	}
}

// plan returns the record for a cluster that has joined.
func (f *hubAWS) plan(d *Driver, name, arn string) driver.Record {
	f.t.Helper()
	f.join(arn)
	return plan(f.t, d, name, arn)
}

// taken returns the calls since it was last called.
func (f *hubAWS) taken() (names []string) {
	for _, call := range f.Calls() {
		_, name, _ := strings.Cut(call.Operation, ":")
		names = append(names, name)
	}
	f.ResetCalls()
	return names
}

// failing fails every call of one name.
func (f *hubAWS) failing(name, code, message string) (mend func()) {
	return f.Inject(fakeaws.Fault{Operation: "*:" + name, Err: &fakeaws.Error{Code: code, Message: message}})
}

// dies has a process die after so many calls. It reports whether the process needed no more of them.
func (f *hubAWS) dies(calls int, do func() error) (survived bool) {
	f.t.Helper()
	remove := f.Inject(fakeaws.Fault{Hook: func(fakeaws.Call) error {
		calls--
		if calls < 0 {
			return &fakeaws.Error{Code: "NoProcess", Message: "there is nobody who calls", Status: 400}
		}
		return nil
	}})
	err := do()
	remove()
	survived = calls >= 0
	if survived && err != nil {
		f.t.Fatal(err)
	}
	return survived
}

// role returns the role for arn1 in the hub's account.
func (f *hubAWS) role() (role fakeaws.Role, there bool) {
	role, there = f.account.Roles()[role1]
	return role, there
}

func (f *hubAWS) changeRole(change func(*fakeaws.Role)) {
	f.t.Helper()
	if err := f.account.ChangeRole(role1, change); err != nil {
		f.t.Fatal(err)
	}
}

func (f *hubAWS) removeRole() { f.account.RemoveRole(role1) }

// remakeRole deletes the role and creates one of its name.
func (f *hubAWS) remakeRole(change func(*fakeaws.Role)) {
	f.t.Helper()
	role, _ := f.role()
	role.ID = ""
	change(&role)
	f.removeRole()
	must(f.account.AddRole(role))(f.t)
}

// entry returns the access entry of role.
func (f *hubAWS) entry() (entry fakeaws.AccessEntry, there bool) {
	entry, there = f.entries()[role1AR]
	return entry, there
}

func (f *hubAWS) entries() map[string]fakeaws.AccessEntry { return f.account.AccessEntries(hubARN) }

func (f *hubAWS) changeEntry(change func(*fakeaws.AccessEntry)) {
	f.t.Helper()
	if !f.account.ChangeAccessEntry(hubARN, role1AR, change) {
		f.t.Fatal("there is no access entry")
	}
}

func (f *hubAWS) removeEntry() { f.account.RemoveAccessEntry(hubARN, role1AR) }

// anHour advances the time by an hour, for the driver and in AWS.
func (f *hubAWS) anHour(c *fakeClock) {
	c.pass(time.Hour)
	f.Age(time.Hour)
}

// hubRoles returns the roles that were created for clusters.
func (f *hubAWS) hubRoles() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(f.account.Roles())), func(name string) bool { return !strings.HasPrefix(name, "ocm-hub-") })
}

// mustBeEmpty fails if something is left.
func (f *hubAWS) mustBeEmpty(t *testing.T) {
	t.Helper()
	for _, name := range f.hubRoles() {
		t.Errorf("the role %s is left", name)
	}
	for arn := range f.entries() {
		t.Errorf("the access entry of %s is left", arn)
	}
}

// mustWork fails unless the agent of the cluster can assume the role, and is authenticated as the cluster.
func mustWork(t *testing.T, f *hubAWS, cluster string) {
	t.Helper()
	hub, _ := irsa.ParseClusterARN(hubARN)
	managed, _ := irsa.ParseClusterARN(arn1)
	identity, _ := irsa.NewIdentity(hub, managed)
	r, hasRole := f.role()
	e, hasEntry := f.entry()
	if !hasRole || !hasEntry {
		t.Fatalf("role %t, entry %t", hasRole, hasEntry)
	}
	if !irsa.Equivalent(r.Trust, identity.HubTrustPolicy().JSON()) {
		t.Errorf("the trust policy is %s", r.Trust)
	}
	if !irsa.Equivalent(r.Policies[role1], identity.HubAccessPolicy().JSON()) {
		t.Errorf("the access policy is %v", r.Policies)
	}
	if e.PrincipalID != r.ID {
		t.Errorf("EKS knows the role by the ID %s, which is %s", e.PrincipalID, r.ID)
	}
	mustEqual(t, "user", e.Username, "open-cluster-management:"+cluster)
	mustEqual(t, "groups", e.KubernetesGroups, []string{"open-cluster-management:" + cluster, "open-cluster-management:managed-clusters"})
	mustEqual(t, "cluster", e.ClusterName, "hub-cluster1")
}
