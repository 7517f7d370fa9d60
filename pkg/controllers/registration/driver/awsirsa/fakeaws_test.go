// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

func TestFakeAWS_ClusterLifecycleInEachPartition(t *testing.T) {
	for region, partition := range map[string]string{"us-west-2": "aws", "cn-north-1": "aws-cn", "us-gov-west-1": "aws-us-gov"} {
		for _, access := range []Access{AccessEntry, AWSAuth} {
			t.Run(partition+" by "+string(access), func(t *testing.T) {
				w := newWorld(t, region, access, nil)
				a, recordA := w.join("a")
				b, recordB := w.join("b")
				mustGrant(t, w.Driver, "a", recordA)
				mustGrant(t, w.Driver, "b", recordB)
				role := w.hub.Roles()[a.HubRole()]
				if role.ARN != "arn:"+partition+":iam::"+hubAccount+":role/"+a.HubRole() {
					t.Errorf("the role is %s", role.ARN)
				}
				if !irsa.Equivalent(role.Trust, a.HubTrustPolicy().JSON()) || !irsa.Equivalent(role.Policies[a.HubRole()], a.HubAccessPolicy().JSON()) ||
					len(role.Policies) != 1 {
					t.Errorf("trust %s, policies %v", role.Trust, role.Policies)
				}
				tags := a.Tags()
				tags["team"], tags[irsa.TagOwner], tags[irsa.TagOwnerHub] = "platform", "a", w.cluster.String()
				mustEqual(t, "tags of the role", role.Tags, tags)
				switch access {
				case AccessEntry:
					mustEqual(t, "tags of the entry", w.hub.AccessEntries(w.cluster.String())[role.ARN].Tags, tags)
					w.mustEnter(a)
					w.mustEnter(b)
				default:
					if data := awsAuthOf(t, w.kube).Data["mapRoles"]; !strings.Contains(data, "- rolearn: "+role.ARN+"\n  username: system:open-cluster-management:a\n") {
						t.Errorf("mapRoles: %s", data)
					}
				}
				if _, err := w.enter(a, b); err == nil {
					t.Error("a cluster becomes the role of another")
				}

				w.ResetCalls()
				mustGrant(t, w.Driver, "a", recordA)
				if n := len(w.Writes()); n > 0 {
					t.Errorf("%d writes without a change", n)
				}
				mustRevoke(t, w.Driver, "a", recordA)
				if _, err := w.enter(a, a); err == nil {
					t.Error("the agent comes in after the revocation")
				}
				if access == AccessEntry {
					w.mustEnter(b)
				}
				mustRevoke(t, w.Driver, "b", recordB)
				mustEqual(t, "left", w.leaks(), []string(nil))
			})
		}
	}
}

// The policy that is written for admins to copy is sufficient, and all of it is necessary.
func TestFakeAWS_CreatorPolicyIsSufficient(t *testing.T) {
	for name, roles := range map[string]irsa.HubRoles{
		"access-entry": {AccessEntries: true}, "aws-auth": {}, "access-entry, as a platform team may demand it": demanded, "aws-auth, so": {Path: demanded.Path, Boundary: demanded.Boundary},
	} {
		w := newWorldOf(t, "us-west-2", roles, nil)
		if errs := w.live(); len(errs) > 0 {
			t.Fatalf("%s: the policy is not enough: %v", name, errors.Join(errs...))
		}
		mustEqual(t, "left", w.leaks(), []string(nil))
		for i, statement := range irsa.CreatorPolicy(w.cluster, w.roles).Statement {
			for _, action := range statement.Action {
				t.Run(fmt.Sprintf("%s without %s of statement %d", name, action, i), func(t *testing.T) {
					w := newWorldOf(t, "us-west-2", roles, func(p irsa.PolicyDocument) irsa.PolicyDocument {
						s := &p.Statement[i]
						s.Action = slices.DeleteFunc(slices.Clone(s.Action), func(a string) bool { return a == action })
						if len(s.Action) == 0 {
							p.Statement = slices.Delete(p.Statement, i, i+1)
						}
						return p
					})
					denied := slices.ContainsFunc(w.live(), func(err error) bool {
						return (errors.Is(err, driver.ErrTerminal) || warningOf(err) != "") && strings.Contains(err.Error(), "AccessDenied") &&
							strings.Contains(err.Error(), "is not authorized to perform: "+action+" ")
					})
					if !denied {
						t.Error("nothing misses it: it is too much")
					}
				})
			}
		}
	}
}

// By the policy, no one can become an admin of the hub.
func TestFakeAWS_CreatorPolicyIsMinimal(t *testing.T) {
	w := newWorld(t, "us-west-2", AccessEntry, nil)
	a, record := w.join("a")
	mustGrant(t, w.Driver, "a", record)
	_, eksRoot := w.root()
	admin := must(w.hub.AddRole(fakeaws.Role{Name: "admin", Trust: a.HubTrustPolicy().JSON()}))(t)
	must(eksRoot.CreateAccessEntry(t.Context(), &eks.CreateAccessEntryInput{ClusterName: &w.cluster.Name, PrincipalArn: &admin}))(t)
	entry := w.hub.AccessEntries(w.cluster.String())[admin].ARN
	creator := must(w.hub.AddRole(fakeaws.Role{Name: "x", Trust: a.HubTrustPolicy().JSON()}))(t)
	ctx := t.Context()
	name, cluster := aws.String("admin"), &w.cluster.Name
	for what, err := range map[string]error{
		"make an entry":      second(w.entries.eks.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{ClusterName: cluster, PrincipalArn: &creator})),
		"make another hub's": second(w.entries.eks.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{ClusterName: aws.String("other"), PrincipalArn: aws.String(a.HubRoleARN())})),
		"change an entry":    second(w.entries.eks.UpdateAccessEntry(ctx, &eks.UpdateAccessEntryInput{ClusterName: cluster, PrincipalArn: &admin, KubernetesGroups: []string{"x"}})),
		"delete an entry":    second(w.entries.eks.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{ClusterName: cluster, PrincipalArn: &admin})),
		"tag an entry":       second(w.entries.eks.TagResource(ctx, &eks.TagResourceInput{ResourceArn: &entry, Tags: map[string]string{"a": "b"}})),
		"tag the hub with a key of its own and another": second(w.entries.eks.TagResource(ctx, &eks.TagResourceInput{ResourceArn: aws.String(w.cluster.String()),
			Tags: map[string]string{irsa.TagOwner: "b", "a": "b"}})),
		"give an entry rights": second(eks.NewFromConfig(w.config).AssociateAccessPolicy(ctx, &eks.AssociateAccessPolicyInput{
			ClusterName: cluster, PrincipalArn: aws.String(a.HubRoleARN()), PolicyArn: aws.String(clusterAdmin),
			AccessScope: &ekstypes.AccessScope{Type: ekstypes.AccessScopeTypeCluster}})),
		"attach a policy": second(iam.NewFromConfig(w.config).AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{
			RoleName: aws.String(a.HubRole()), PolicyArn: aws.String(adminPolicy)})),
		"tag the hub":        second(w.entries.eks.TagResource(ctx, &eks.TagResourceInput{ResourceArn: aws.String(w.cluster.String()), Tags: map[string]string{"a": "b"}})),
		"read a role":        second(w.Driver.roles.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: name})),
		"delete a role":      second(w.Driver.roles.iam.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: name})),
		"take a role over":   second(w.Driver.roles.iam.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: name, PolicyDocument: aws.String(a.HubTrustPolicy().JSON())})),
		"give a role rights": second(w.Driver.roles.iam.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: name, PolicyName: name, PolicyDocument: aws.String(fakeaws.AllowAll)})),
	} {
		if err == nil || !strings.Contains(err.Error(), "AccessDenied") {
			t.Errorf("it may %s: %v", what, err)
		}
	}
}

// A cluster may cost 6 calls, including those for credentials and the reads of what AWS does not show yet.
func TestFakeAWS_CallsOfFirstGrant(t *testing.T) {
	const clusters, most = 20, 6
	for name, test := range map[string]struct{ hidden, want int }{
		"at best":                 {0, 4},
		"EKS sees the role later": {2, 6},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "us-west-2", AccessEntry, nil)
			w.DelayVisibility(test.hidden, 0)
			for i := range clusters {
				cluster := fmt.Sprintf("c%d", i)
				_, record := w.join(cluster)
				for try := 0; ; try++ {
					err := w.Grant(t.Context(), cluster, record)
					if err == nil {
						break
					}
					if try > test.hidden || errors.Is(err, driver.ErrTerminal) {
						t.Fatal(err)
					}
				}
			}
			sessions, calls := w.Count("sts:*"), w.Count()
			t.Logf("%d calls for %d clusters, %d of them for credentials", calls, clusters, sessions)
			if sessions != 1 || calls != clusters*test.want+1 || calls-sessions > clusters*most {
				t.Errorf("want %d calls for each cluster, and one for the credentials", test.want)
			}
		})
	}
}

// Two clusters name one EKS cluster: the one that was accepted first has it, the other gets nothing and revokes nothing.
func TestFakeAWS_OneClusterPerARN(t *testing.T) {
	w := newWorld(t, "us-west-2", AccessEntry, nil)
	a, record := w.join("a")
	mustGrant(t, w.Driver, "a", record)
	w.ResetCalls()
	err := w.Grant(t.Context(), "b", record)
	if !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), `belongs to the ManagedCluster "a"`) {
		t.Errorf("got %v", err)
	}
	mustRevoke(t, w.Driver, "b", record)
	mustEqual(t, "writes", len(w.Writes()), 0)
	w.mustEnter(a)
}

// The SDK stops retrying after too many failures, and its error says so besides that of AWS.
func TestFakeAWS_OutageIsReportedInOneLine(t *testing.T) {
	w := newWorld(t, "us-west-2", AccessEntry, nil)
	a, record := w.join("a")
	w.Inject(fakeaws.Fault{Operation: "iam:*", Err: fakeaws.Internal})
	const grants = 160
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range grants / 16 {
				err := w.Grant(t.Context(), "a", record)
				if want := "IAM GetRole " + a.HubRole() + ": " + fakeaws.Internal.Error(); err == nil || err.Error() != want || errors.Is(err, driver.ErrTerminal) {
					t.Errorf("got %v, want %s", err, want)
				}
			}
		})
	}
	wg.Wait()
	if n := w.Count("iam:GetRole"); n >= 2*grants {
		t.Errorf("%d calls: the SDK has always tried again, so the test has no point", n)
	}
}
