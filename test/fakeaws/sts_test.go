// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"crypto/md5"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// seed has the roles of the registration's specification: the managed cluster's role, which may assume the role on the hub, which trusts it by its
// tags.
type seed struct {
	*world
	hash                string
	tags                map[string]string
	managedARN, hubARN  string
	managedCluster, hub clients
}

// seedHash returns the hash in the roles' names.
func seedHash(hubAccount, hubCluster, managedAccount, managedCluster string) string {
	return fmt.Sprintf("%x", md5.Sum([]byte(strings.Join([]string{hubAccount, hubCluster, managedAccount, managedCluster}, "#"))))
}

func newSeed(t *testing.T) *seed {
	t.Helper()
	w := newWorld(t)
	s := &seed{world: w, hash: seedHash(hubID, "hub", managedID, "managed1"), hub: w.root, tags: map[string]string{
		"hub_cluster_account_id": hubID, "hub_cluster_name": "hub", "managed_cluster_account_id": managedID, "managed_cluster_name": "managed1"}}
	s.hubARN = "arn:aws:iam::" + hubID + ":role/ocm-hub-" + s.hash
	s.addManagedRole(t)
	noError(t, nil, second(w.root.iam.CreateRole(t.Context(), &iam.CreateRoleInput{
		RoleName: aws.String("ocm-hub-" + s.hash), AssumeRolePolicyDocument: aws.String(s.trustPolicy())})))
	noError(t, nil, second(w.root.iam.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{
		RoleName: aws.String("ocm-hub-" + s.hash), PolicyName: aws.String("ocm-hub-" + s.hash),
		PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["eks:DescribeCluster","eks:ListClusters"],
			"Resource":"arn:aws:eks:` + region + `:` + hubID + `:cluster/hub"}]}`)})))
	return s
}

func (s *seed) addManagedRole(t *testing.T) {
	t.Helper()
	s.managedARN = must(s.managed.AddRole(Role{
		Name: "ocm-managed-cluster-" + s.hash, Tags: s.tags, Trust: trust(managedID),
		Policies: map[string]string{"assume": allow("sts:AssumeRole", s.hubARN)},
	}))(t)
	out, err := s.user(t, s.managed, "admin"+newID(""), AllowAll).sts.AssumeRole(t.Context(), assume(s.managedARN, "agent"))
	s.managedCluster = as(t, s.managed, out, err)
}

func (s *seed) trustPolicy() string {
	return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"` + s.managedARN + `"},"Action":"sts:AssumeRole",
		"Condition":{"StringEquals":{
			"aws:PrincipalTag/hub_cluster_account_id":"` + s.tags["hub_cluster_account_id"] + `",
			"aws:PrincipalTag/hub_cluster_name":"` + s.tags["hub_cluster_name"] + `",
			"aws:PrincipalTag/managed_cluster_account_id":"` + s.tags["managed_cluster_account_id"] + `",
			"aws:PrincipalTag/managed_cluster_name":"` + s.tags["managed_cluster_name"] + `"}}}]}`
}

func (s *seed) refused(t *testing.T) {
	t.Helper()
	_, err := s.managedCluster.sts.AssumeRole(t.Context(), assume(s.hubARN, "agent"))
	wantCode(t, err, "AccessDenied", "is not authorized to perform: sts:AssumeRole on resource: "+s.hubARN)
}

func TestSeed_HashOfTestVectors(t *testing.T) {
	for input, want := range map[[4]string]string{
		{"hubaccount1", "hubcluster1", "managedaccount1", "managedcluster1"}: "79e99112993014816615711cbd35a9bc",
		{"123456789012", "hub-cluster1", "123456789012", "managed-cluster1"}: "7f8141296c75f2871e3d030f85c35692",
	} {
		if got := seedHash(input[0], input[1], input[2], input[3]); got != want {
			t.Errorf("%v: %s, want %s", input, got, want)
		}
	}
}

func TestSeed_ManagedClusterAssumesRole(t *testing.T) {
	s := newSeed(t)
	out, err := s.managedCluster.sts.AssumeRole(t.Context(), assume(s.hubARN, "agent"))
	c := as(t, s.world.hub, out, err)
	who := must(c.sts.GetCallerIdentity(t.Context(), nil))(t)
	if want := "arn:aws:sts::" + hubID + ":assumed-role/ocm-hub-" + s.hash + "/agent"; *who.Arn != want || *who.Account != hubID || *out.AssumedRoleUser.Arn != want {
		t.Errorf("caller %s of %s, want %s", *who.Arn, *who.Account, want)
	}
	got := must(c.eks.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("hub")}))(t)
	if *got.Cluster.Arn != s.clusterARN || *got.Cluster.CertificateAuthority.Data != "Y2E=" || *got.Cluster.Endpoint != "https://hub.example" {
		t.Errorf("cluster %+v", got.Cluster)
	}
	_, err = c.eks.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("other")})
	wantCode(t, err, "AccessDeniedException", "eks:DescribeCluster")
	_, err = c.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("ocm-hub-" + s.hash)})
	wantCode(t, err, "AccessDenied", "iam:GetRole")
	if until := time.Until(*out.Credentials.Expiration); until > time.Hour || until < 59*time.Minute {
		t.Errorf("the session ends in %s", until)
	}
}

func TestAssumeRole_RequiresAllTags(t *testing.T) {
	s := newSeed(t)
	managedAdmin := clientsOf(s.managed.Config(s.managed.Root())).iam
	role := aws.String("ocm-managed-cluster-" + s.hash)
	for key, value := range s.tags {
		tag := func(value string) error {
			return second(managedAdmin.TagRole(t.Context(), &iam.TagRoleInput{RoleName: role, Tags: []types.Tag{{Key: &key, Value: &value}}}))
		}
		noError(t, nil, tag("another"))
		s.refused(t)
		noError(t, nil, tag(strings.ToUpper(value+"x")))
		s.refused(t)
		noError(t, nil, second(managedAdmin.UntagRole(t.Context(), &iam.UntagRoleInput{RoleName: role, TagKeys: []string{key}})))
		s.refused(t)
		noError(t, nil, tag(value))
		noError(t, nil, second(s.managedCluster.sts.AssumeRole(t.Context(), assume(s.hubARN, "agent"))))
	}
}

func TestAssumeRole_AcrossAccountsRequiresCallerPolicy(t *testing.T) {
	s := newSeed(t)
	admin := clientsOf(s.managed.Config(s.managed.Root())).iam
	role, policy := aws.String("ocm-managed-cluster-"+s.hash), aws.String("assume")
	noError(t, nil, second(admin.DeleteRolePolicy(t.Context(), &iam.DeleteRolePolicyInput{RoleName: role, PolicyName: policy})))
	s.refused(t)
	for document, good := range map[string]bool{
		allow("sts:AssumeRole", "arn:aws:iam::"+hubID+":role/ocm-hub-other"): false,
		allow("sts:assumerole", "arn:aws:iam::*:role/ocm-hub-*"):             true,
	} {
		noError(t, nil, second(admin.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{RoleName: role, PolicyName: policy, PolicyDocument: &document})))
		_, err := s.managedCluster.sts.AssumeRole(t.Context(), assume(s.hubARN, "agent"))
		if (err == nil) != good {
			t.Errorf("%s: error %v", document, err)
		}
	}
}

func TestAssumeRole_RecreatedPrincipalIsDifferent(t *testing.T) {
	s := newSeed(t)
	before := s.managedCluster
	s.managed.RemoveRole("ocm-managed-cluster-" + s.hash)
	s.addManagedRole(t)
	s.refused(t)
	_, err := before.sts.GetCallerIdentity(t.Context(), nil)
	wantCode(t, err, "InvalidClientTokenId", "")
	noError(t, nil, second(s.hub.iam.UpdateAssumeRolePolicy(t.Context(), &iam.UpdateAssumeRolePolicyInput{
		RoleName: aws.String("ocm-hub-" + s.hash), PolicyDocument: aws.String(s.trustPolicy())})))
	noError(t, nil, second(s.managedCluster.sts.AssumeRole(t.Context(), assume(s.hubARN, "agent"))))
}

func TestAssumeRole_SessionsEndWithRole(t *testing.T) {
	s := newSeed(t)
	out, err := s.managedCluster.sts.AssumeRole(t.Context(), assume(s.hubARN, "agent"))
	c := as(t, s.world.hub, out, err)
	name := aws.String("ocm-hub-" + s.hash)
	noError(t, nil, second(s.hub.iam.DeleteRolePolicy(t.Context(), &iam.DeleteRolePolicyInput{RoleName: name, PolicyName: name})))
	noError(t, nil, second(s.hub.iam.DeleteRole(t.Context(), &iam.DeleteRoleInput{RoleName: name})))
	wantCode(t, second(c.sts.GetCallerIdentity(t.Context(), nil)), "InvalidClientTokenId", "")
	s.refused(t)
	noError(t, nil, second(s.hub.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: name, AssumeRolePolicyDocument: aws.String(s.trustPolicy())})))
	wantCode(t, second(c.sts.GetCallerIdentity(t.Context(), nil)), "InvalidClientTokenId", "")
}

func TestAssumeRole_TrustInSameAccount(t *testing.T) {
	w := newWorld(t)
	weak, strong := w.user(t, w.hub, "weak", allow("eks:*", "*")), w.user(t, w.hub, "strong", AllowAll)
	forbidden := w.user(t, w.hub, "forbidden", strings.Replace(AllowAll, "Allow", "Deny", 1))
	for name, tc := range map[string]struct {
		trust                   string
		weak, strong, forbidden bool
	}{
		"account": {trust("arn:aws:iam::" + hubID + ":root"), false, true, false},
		"user":    {trust("arn:aws:iam::" + hubID + ":user/weak"), true, false, false},
		"denied":  {trust("arn:aws:iam::" + hubID + ":user/forbidden"), false, false, false},
		"anyone":  {trust("*"), true, true, false},
		"other":   {trust(managedID), false, false, false},
		"deny wins": {`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"sts:AssumeRole"},
			{"Effect":"Deny","Principal":{"AWS":"arn:aws:iam::` + hubID + `:user/weak"},"Action":"sts:*"}]}`, false, true, false},
	} {
		arn := must(w.hub.AddRole(Role{Name: "to-" + strings.ReplaceAll(name, " ", "-"), Trust: tc.trust}))(t)
		for _, caller := range []struct {
			name string
			c    clients
			may  bool
		}{{"weak", weak, tc.weak}, {"strong", strong, tc.strong}, {"forbidden", forbidden, tc.forbidden}} {
			if err := second(caller.c.sts.AssumeRole(t.Context(), assume(arn, "session"))); (err == nil) != caller.may {
				t.Errorf("%s by %s: error %v, want allowed %v", name, caller.name, err, caller.may)
			}
		}
	}
	arn := must(w.hub.AddRole(Role{Name: "r", Trust: trust("*")}))(t)
	wantCode(t, second(w.root.sts.AssumeRole(t.Context(), assume(arn, "session"))), "AccessDenied", "root")
	for _, missing := range []string{"arn:aws:iam::" + hubID + ":role/missing", "arn:aws:iam::999999999999:role/r", "not an arn, but long enough"} {
		wantCode(t, second(strong.sts.AssumeRole(t.Context(), assume(missing, "session"))), "AccessDenied", missing)
	}
}

func TestAssumeRole_DurationLimits(t *testing.T) {
	w := newWorld(t)
	user := w.user(t, w.hub, "u", AllowAll)
	long := must(w.hub.AddRole(Role{Name: "long", Trust: trust(hubID), MaxSessionDuration: 4 * time.Hour, Policies: map[string]string{"all": AllowAll}}))(t)
	short := must(w.hub.AddRole(Role{Name: "short", Trust: trust(hubID)}))(t)
	request := func(c clients, arn string, hours int32) (*sts.AssumeRoleOutput, error) {
		in := assume(arn, "s1")
		in.DurationSeconds = aws.Int32(hours * 3600)
		return c.sts.AssumeRole(t.Context(), in)
	}
	out, err := request(user, long, 4)
	chained := as(t, w.hub, out, err)
	wantCode(t, second(request(user, long, 5)), "ValidationError", "MaxSessionDuration")
	wantCode(t, second(request(user, short, 2)), "ValidationError", "MaxSessionDuration")
	noError(t, nil, second(request(chained, long, 1)))
	wantCode(t, second(request(chained, long, 2)), "ValidationError", "chaining")
	wantCode(t, second(request(user, long, 13)), "ValidationError", "less than or equal to 43200")
}

func TestAssumeRole_PartitionsAreSeparate(t *testing.T) {
	w := newWorld(t)
	china := must(w.AddAccount("999988887777", "cn-north-1"))(t)
	arn := must(china.AddRole(Role{Name: "r", Trust: trust("*")}))(t)
	wantCode(t, second(w.user(t, w.hub, "u", AllowAll).sts.AssumeRole(t.Context(), assume(arn, "s1"))), "AccessDenied", arn)
	noError(t, nil, second(w.user(t, china, "u", AllowAll).sts.AssumeRole(t.Context(), assume(arn, "s1"))))
}

func TestAssumeRole_UnsupportedIsRejected(t *testing.T) {
	w := newWorld(t)
	arn := must(w.hub.AddRole(Role{Name: "r", Trust: trust(hubID)}))(t)
	in := assume(arn, "s1")
	in.Policy = aws.String(AllowAll)
	wantCode(t, second(w.user(t, w.hub, "u", AllowAll).sts.AssumeRole(t.Context(), in)), "FakeAWSUnsupported", "Policy")
}
