// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/clusterhub/clusterhub/test/fakeaws/iampolicy"
)

func TestTagging_RequiresTagPermission(t *testing.T) {
	entry := "arn:aws:eks:" + region + ":" + hubID + ":access-entry/hub/role/" + hubID + "/r/*"
	for name, test := range map[string]struct {
		tagging                        Tagging
		none, onCluster, onEntry, both bool
	}{
		"both":    {TagsNeedBoth, false, false, false, true},
		"cluster": {TagsNeedCluster, false, true, false, true},
		"entry":   {TagsNeedEntry, false, false, true, true},
		"refused": {TagsRefused, false, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.SetTagging(test.tagging)
			arn := w.createRole(t, "r")
			for _, user := range []struct {
				name      string
				resources []string
				want      bool
			}{
				{"none", nil, test.none}, {"cluster", []string{w.clusterARN}, test.onCluster}, {"entry", []string{entry}, test.onEntry},
				{"both", []string{w.clusterARN, entry}, test.both},
			} {
				statements := []string{fmt.Sprintf(`{"Effect":"Allow","Action":"eks:CreateAccessEntry","Resource":%q}`, w.clusterARN)}
				for _, resource := range user.resources {
					statements = append(statements, fmt.Sprintf(`{"Effect":"Allow","Action":"eks:TagResource","Resource":%q,
						"Condition":{"ForAllValues:StringEquals":{"aws:TagKeys":["a","b"]},"StringEquals":{"aws:RequestTag/a":"1"}}}`, resource))
				}
				c := w.user(t, w.hub, user.name, `{"Version":"2012-10-17","Statement":[`+strings.Join(statements, ",")+`]}`)
				create := func(tags map[string]string) error {
					defer func() {
						_, _ = w.root.eks.DeleteAccessEntry(t.Context(), &eks.DeleteAccessEntryInput{ClusterName: aws.String("hub"), PrincipalArn: &arn})
					}()
					return second(w.entry(t, c, arn, func(in *eks.CreateAccessEntryInput) { in.Tags = tags }))
				}
				err := create(map[string]string{"a": "1", "b": "2"})
				if (err == nil) != user.want {
					t.Errorf("with the right on %s: %v", user.name, err)
				}
				if err != nil {
					wantCode(t, err, "AccessDeniedException", "is not authorized to perform: eks:TagResource on resource: ")
				}
				for _, tags := range []map[string]string{{"a": "1", "c": ""}, {"a": "2"}} {
					wantCode(t, create(tags), "AccessDeniedException", "eks:TagResource")
				}
				noError(t, nil, create(nil))
			}
		})
	}
}

func TestManagedPolicy_IsAttachedAndEvaluated(t *testing.T) {
	w := newWorld(t)
	w.createRole(t, "r")
	c, name, ctx := w.root.iam, aws.String("r"), t.Context()
	admin, missing := aws.String("arn:aws:iam::aws:policy/AdministratorAccess"), aws.String("arn:aws:iam::aws:policy/NoSuchPolicy")
	for range 2 {
		noError(t, nil, second(c.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: name, PolicyArn: admin})))
	}
	listed := must(c.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: name}))(t).AttachedPolicies
	if len(listed) != 1 || *listed[0].PolicyArn != *admin || *listed[0].PolicyName != "AdministratorAccess" ||
		!reflect.DeepEqual(w.hub.Roles()["r"].Attached, []string{*admin}) {
		t.Errorf("attached %v", listed)
	}
	session := identity{account: w.hub, role: w.hub.roles["r"]}
	if session.may("iam:CreateUser", "*", iampolicy.Context{}) != iampolicy.Allowed {
		t.Error("it does not count")
	}
	wantType[*types.DeleteConflictException](t, second(c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: name})))
	wantType[*types.NoSuchEntityException](t, second(c.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: name, PolicyArn: missing})))
	noError(t, nil, second(c.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: name, PolicyArn: admin})))
	wantType[*types.NoSuchEntityException](t, second(c.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: name, PolicyArn: admin})))
	noError(t, nil, second(c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: name})))
}

func TestAccessPolicy_AssociateListAndDisassociate(t *testing.T) {
	w := newWorld(t)
	c, arn, hub, ctx := w.root.eks, w.createRole(t, "r"), aws.String("hub"), t.Context()
	noError(t, nil, second(w.entry(t, w.root, arn, nil)))
	const prefix = "arn:aws:eks::aws:cluster-access-policy/"
	associate := func(name string) error {
		return second(c.AssociateAccessPolicy(ctx, &eks.AssociateAccessPolicyInput{ClusterName: hub, PrincipalArn: &arn, PolicyArn: aws.String(prefix + name),
			AccessScope: &ekstypes.AccessScope{Type: ekstypes.AccessScopeTypeCluster}}))
	}
	for _, name := range []string{"AmazonEKSViewPolicy", "AmazonEKSClusterAdminPolicy", "AmazonEKSViewPolicy"} {
		noError(t, nil, associate(name))
	}
	wantType[*ekstypes.InvalidParameterException](t, associate("NoSuchPolicy"))
	var got []string
	pages := eks.NewListAssociatedAccessPoliciesPaginator(c, &eks.ListAssociatedAccessPoliciesInput{ClusterName: hub, PrincipalArn: &arn, MaxResults: aws.Int32(1)})
	for pages.HasMorePages() {
		for _, p := range must(pages.NextPage(ctx))(t).AssociatedAccessPolicies {
			got = append(got, strings.TrimPrefix(*p.PolicyArn, prefix)+" "+string(p.AccessScope.Type))
		}
	}
	if !reflect.DeepEqual(got, []string{"AmazonEKSClusterAdminPolicy cluster", "AmazonEKSViewPolicy cluster"}) {
		t.Errorf("got %v", got)
	}
	take := &eks.DisassociateAccessPolicyInput{ClusterName: hub, PrincipalArn: &arn, PolicyArn: aws.String(prefix + "AmazonEKSClusterAdminPolicy")}
	noError(t, nil, second(c.DisassociateAccessPolicy(ctx, take)))
	wantType[*ekstypes.ResourceNotFoundException](t, second(c.DisassociateAccessPolicy(ctx, take)))
	if left := w.hub.AccessEntries(w.clusterARN)[arn].AccessPolicies; !reflect.DeepEqual(left, []string{prefix + "AmazonEKSViewPolicy"}) {
		t.Errorf("left %v", left)
	}
}

func TestAge_BackdatesRolesAndEntries(t *testing.T) {
	w := newWorld(t)
	arn := w.createRole(t, "r")
	noError(t, nil, second(w.entry(t, w.root, arn, nil)))
	w.Age(time.Hour)
	role := must(w.root.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("r")}))(t).Role
	entry := must(w.root.eks.DescribeAccessEntry(t.Context(), &eks.DescribeAccessEntryInput{ClusterName: aws.String("hub"), PrincipalArn: &arn}))(t).AccessEntry
	for _, at := range []*time.Time{role.CreateDate, entry.CreatedAt} {
		if age := time.Since(*at); age < time.Hour || age > 2*time.Hour {
			t.Errorf("%s old", age)
		}
	}
}
