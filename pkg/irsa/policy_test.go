// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package irsa

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

// The documents of the specification, with its placeholders filled in.
const (
	seedTrust = `{
      "Version": "2012-10-17",
      "Statement": [
        {
          "Effect": "Allow",
          "Principal": {
            "AWS": "arn:aws:iam::210987654321:role/ocm-managed-cluster-SUFFIX"
          },
          "Action": "sts:AssumeRole",
          "Condition": {
            "StringEquals": {
                    "aws:PrincipalTag/hub_cluster_account_id":"123456789012",
                    "aws:PrincipalTag/hub_cluster_name":"hub-cluster1",
                    "aws:PrincipalTag/managed_cluster_account_id":"210987654321",
                    "aws:PrincipalTag/managed_cluster_name":"managed-cluster1"
            }
          }
        }
      ]
    }`
	seedAccess = `{
      "Version": "2012-10-17",
      "Statement": [
        {
          "Effect": "Allow",
          "Action": [
            "eks:DescribeCluster",
            "eks:ListClusters"
          ],
          "Resource": "arn:aws:eks:us-west-2:123456789012:cluster/hub-cluster1"
        }
      ]
    }`
	seedManagedAccess = `{
   "Version": "2012-10-17",
   "Statement": [
      {
         "Effect": "Allow",
         "Action": "sts:AssumeRole",
         "Resource": "arn:aws:iam::123456789012:role/ocm-hub-SUFFIX"
      }
   ]
}`
	seedManagedTrust = `{
   "Version": "2012-10-17",
   "Statement": [
      {
         "Effect": "Allow",
         "Principal": {
            "Federated": "arn:aws:iam::210987654321:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/A"
         },
         "Action": "sts:AssumeRoleWithWebIdentity",
         "Condition": {
            "StringEquals": {
               "oidc.eks.eu-west-1.amazonaws.com/id/A:sub": "system:serviceaccount:open-cluster-management-agent:k-registration-sa",
               "oidc.eks.eu-west-1.amazonaws.com/id/A:aud": "sts.amazonaws.com"
            }
         }
      },
      {
         "Effect": "Allow",
         "Principal": {
            "Federated": "arn:aws:iam::210987654321:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/A"
         },
         "Action": "sts:AssumeRoleWithWebIdentity",
         "Condition": {
            "StringEquals": {
               "oidc.eks.eu-west-1.amazonaws.com/id/A:sub": "system:serviceaccount:open-cluster-management-agent:k-work-sa",
               "oidc.eks.eu-west-1.amazonaws.com/id/A:aud": "sts.amazonaws.com"
            }
         }
      }
   ]
}`
)

func TestPolicies_MatchSpecification(t *testing.T) {
	i := newIdentity(t)
	for name, test := range map[string]struct {
		policy PolicyDocument
		seed   string
	}{
		"hub trust":      {i.HubTrustPolicy(), seedTrust},
		"hub access":     {i.HubAccessPolicy(), seedAccess},
		"managed access": {i.ManagedAccessPolicy(), seedManagedAccess},
		"managed trust": {WebIdentityTrustPolicy(i.Managed, "oidc.eks.eu-west-1.amazonaws.com/id/A",
			"system:serviceaccount:open-cluster-management-agent:k-registration-sa",
			"system:serviceaccount:open-cluster-management-agent:k-work-sa"), seedManagedTrust},
	} {
		seed := strings.ReplaceAll(test.seed, "SUFFIX", i.Suffix())
		if !Equivalent(test.policy.JSON(), seed) {
			t.Errorf("%s: got %s", name, test.policy.Indented())
		}
	}
	// The order of the keys is the specification's, too, to simplify a comparison by eye.
	if want := strings.Join(strings.Fields(strings.ReplaceAll(seedTrust, "SUFFIX", i.Suffix())), ""); i.HubTrustPolicy().JSON() != want {
		t.Errorf("got %s\nwant %s", i.HubTrustPolicy().JSON(), want)
	}
}

func TestPolicies_NamePartition(t *testing.T) {
	i, err := NewIdentity(mustParse(t, "arn:aws-cn:eks:cn-north-1:123456789012:cluster/hub"),
		mustParse(t, "arn:aws-cn:eks:cn-northwest-1:210987654321:cluster/c"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []PolicyDocument{i.HubTrustPolicy(), i.HubAccessPolicy(), i.ManagedAccessPolicy(),
		WebIdentityTrustPolicy(i.Hub, "oidc", "system:serviceaccount:a:b"), CreatorPolicy(i.Hub, HubRoles{AccessEntries: true})} {
		if strings.Contains(p.JSON(), "arn:aws:") || !strings.Contains(p.JSON(), "arn:aws-cn:") {
			t.Error(p.JSON())
		}
	}
}

func TestCreatorPolicy_AllowsOnlyRequiredActions(t *testing.T) {
	hub := newIdentity(t).Hub
	// This is the specification's list, and what access entries and tags need in addition.
	seed := []string{"iam:CreateRole", "iam:DeleteRole", "iam:UpdateAssumeRolePolicy", "iam:PutRolePolicy",
		"iam:DeleteRolePolicy", "iam:GetRole", "iam:GetRolePolicy"}
	more := []string{"iam:TagRole", "iam:ListRolePolicies", "iam:ListAttachedRolePolicies", "iam:DetachRolePolicy",
		"eks:CreateAccessEntry", "eks:DescribeAccessEntry", "eks:UpdateAccessEntry", "eks:DeleteAccessEntry",
		"eks:ListAssociatedAccessPolicies", "eks:DisassociateAccessPolicy", "eks:TagResource"}
	var got []string
	for _, s := range CreatorPolicy(hub, HubRoles{AccessEntries: true}).Statement {
		got = append(got, s.Action...)
		for _, resource := range s.Resource {
			if resource != hub.String() && !strings.Contains(resource, "/ocm-hub-*") {
				t.Errorf("%s is not the hub's", resource)
			}
		}
		if slices.Contains(s.Action, "eks:CreateAccessEntry") &&
			!slices.Equal(s.Condition["ArnLike"]["eks:principalArn"], Values{"arn:aws:iam::123456789012:role/ocm-hub-*"}) {
			t.Error("entries of any principal may be made")
		}
	}
	want := append(seed, more...)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if strings.Contains(CreatorPolicy(hub, HubRoles{}).JSON(), "eks") {
		t.Error("aws-auth needs no right on EKS")
	}
}

func TestEquivalent(t *testing.T) {
	i := newIdentity(t)
	trust, access := i.HubTrustPolicy().JSON(), i.HubAccessPolicy().JSON()
	for name, test := range map[string]struct {
		a, b string
		want bool
	}{
		"itself":         {trust, trust, true},
		"as AWS returns": {trust, url.PathEscape(trust), true},
		"null":           {`null`, `null`, false},
		"query escaped, whose spaces are plus signs": {`{"Statement":[],"Id":"a b"}`, url.QueryEscape(`{"Statement":[],"Id":"a b"}`), false},
		"white space":                        {access, "\n" + i.HubAccessPolicy().Indented() + "\n", true},
		"a list of one":                      {trust, strings.Replace(trust, `"sts:AssumeRole"`, `["sts:AssumeRole"]`, 1), true},
		"one statement without list":         {trust, strings.Replace(strings.Replace(trust, `[{`, `{`, 1), `}]`, `}`, 1), true},
		"the order of actions":               {access, strings.Replace(access, `"eks:DescribeCluster","eks:ListClusters"`, `"eks:ListClusters","eks:DescribeCluster"`, 1), true},
		"the order of statements":            {`{"Statement":[{"Effect":"Allow"},{"Effect":"Deny"}]}`, `{"Statement":[{"Effect":"Deny"},{"Effect":"Allow"}]}`, true},
		"everybody, by either spelling":      {`{"Statement":{"Principal":"*"}}`, `{"Statement":{"Principal":{"AWS":["*"]}}}`, true},
		"a condition's list of one":          {trust, strings.Replace(trust, `"hub-cluster1"`, `["hub-cluster1"]`, 1), true},
		"one action more":                    {access, strings.Replace(access, `"eks:ListClusters"`, `"eks:ListClusters","eks:*"`, 1), false},
		"one action less":                    {access, strings.Replace(access, `,"eks:ListClusters"`, ``, 1), false},
		"another effect":                     {access, strings.Replace(access, `Allow`, `Deny`, 1), false},
		"another principal":                  {trust, strings.Replace(trust, `210987654321:role`, `999999999999:role`, 1), false},
		"a principal that was deleted":       {trust, strings.Replace(trust, i.ManagedRoleARN(), `AROAEXAMPLE`, 1), false},
		"without condition":                  {trust, trust[:strings.Index(trust, `,"Condition"`)] + `}]}`, false},
		"another value of a condition":       {trust, strings.Replace(trust, `"managed-cluster1"`, `"other"`, 1), false},
		"a condition that also allows":       {trust, strings.Replace(trust, `"managed-cluster1"`, `["managed-cluster1","*"]`, 1), false},
		"one statement more":                 {access, strings.Replace(access, `[{`, `[{"Effect":"Allow","Action":"*","Resource":"*"},{`, 1), false},
		"NotAction is not Action":            {access, strings.Replace(access, `"Action"`, `"NotAction"`, 1), false},
		"an older version":                   {access, strings.Replace(access, `2012-10-17`, `2008-10-17`, 1), false},
		"no JSON":                            {access, `{`, false},
		"nothing":                            {access, ``, false},
		"nothing twice":                      {``, ``, false},
		"a list":                             {access, `[]`, false},
		"bad escapes":                        {access, `%zz`, false},
		"statements that are not statements": {access, `{"Version":"2012-10-17","Statement":[1,null,"x"]}`, false},
	} {
		if got := Equivalent(test.a, test.b); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
		if got := Equivalent(test.b, test.a); got != test.want {
			t.Errorf("%s, the other way round: got %v", name, got)
		}
	}
}
