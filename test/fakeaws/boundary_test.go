// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

func TestBoundary_SetGetAndDelete(t *testing.T) {
	w := newWorld(t)
	first, second := must(w.hub.AddPolicy("team/first", AllowAll))(t), "arn:aws:iam::aws:policy/AdministratorAccess"
	if first != "arn:aws:iam::"+hubID+":policy/team/first" {
		t.Errorf("the policy is %s", first)
	}
	c, name := w.root.iam, aws.String("r")
	is := func(want string) {
		t.Helper()
		role := must(c.GetRole(t.Context(), &iam.GetRoleInput{RoleName: name}))(t).Role
		got := ""
		if role.PermissionsBoundary != nil {
			got = *role.PermissionsBoundary.PermissionsBoundaryArn
		}
		if got != want || w.hub.Roles()["r"].Boundary != want {
			t.Errorf("the boundary is %q, want %q", got, want)
		}
	}
	must(c.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: name, AssumeRolePolicyDocument: aws.String(trust(hubID)), PermissionsBoundary: &first}))(t)
	is(first)
	must(c.PutRolePermissionsBoundary(t.Context(), &iam.PutRolePermissionsBoundaryInput{RoleName: name, PermissionsBoundary: &second}))(t)
	is(second)
	must(c.DeleteRolePermissionsBoundary(t.Context(), &iam.DeleteRolePermissionsBoundaryInput{RoleName: name}))(t)
	is("")
	_, err := c.DeleteRolePermissionsBoundary(t.Context(), &iam.DeleteRolePermissionsBoundaryInput{RoleName: name})
	wantType[*types.NoSuchEntityException](t, err)
	if _, err := w.hub.AddPolicy("team/first", AllowAll); err == nil {
		t.Error("a policy is added twice")
	}
}

func TestBoundary_RequiresExistingPolicy(t *testing.T) {
	w := newWorld(t)
	arn := w.createRole(t, "r")
	theirs := must(w.managed.AddPolicy("theirs", AllowAll))(t)
	for boundary, code := range map[string]string{
		"short":                              "ValidationError", // by the model
		arn:                                  "ValidationError",
		strings.Repeat("x", 30):              "ValidationError",
		"arn:aws:iam::" + hubID + ":policy/": "ValidationError",
		"arn:aws:iam::" + hubID + ":policy/missing": "NoSuchEntity",
		"arn:aws:iam::aws:policy/Missing":           "NoSuchEntity",
		theirs:                                      "NoSuchEntity",
	} {
		_, err := w.root.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("new"), AssumeRolePolicyDocument: aws.String(trust(hubID)),
			PermissionsBoundary: aws.String(boundary)})
		wantCode(t, err, code, "")
		_, err = w.root.iam.PutRolePermissionsBoundary(t.Context(), &iam.PutRolePermissionsBoundaryInput{RoleName: aws.String("r"), PermissionsBoundary: aws.String(boundary)})
		wantCode(t, err, code, "")
	}
	for _, path := range []string{"x", "/x", "x/", "/a b/", "/" + strings.Repeat("x", 511) + "/"} {
		_, err := w.root.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("new"), AssumeRolePolicyDocument: aws.String(trust(hubID)), Path: &path})
		wantCode(t, err, "ValidationError", "'Path'")
	}
	if len(w.hub.Roles()) != 1 || w.hub.Roles()["r"].Boundary != "" {
		t.Errorf("the roles are %v", w.hub.Roles())
	}
}

// TestBoundary_LimitsPolicies verifies that a boundary allows nothing by itself, and that policies allow nothing beyond it.
func TestBoundary_LimitsPolicies(t *testing.T) {
	w := newWorld(t)
	boundary := must(w.hub.AddPolicy("limits", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"eks:*","Resource":"*"},
		{"Effect":"Deny","Action":"eks:ListAccessEntries","Resource":"*"}]}`))(t)
	user := w.user(t, w.hub, "u", AllowAll)
	for name, policies := range map[string]map[string]string{"bounded": {"all": AllowAll}, "empty": nil} {
		arn := must(w.hub.AddRole(Role{Name: name, Trust: trust(hubID), Policies: policies, Boundary: boundary}))(t)
		out, err := user.sts.AssumeRole(t.Context(), assume(arn, "me"))
		c := as(t, w.hub, out, err)
		if _, err := c.eks.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("hub")}); (err == nil) != (policies != nil) {
			t.Errorf("%s: what both allow: %v", name, err)
		}
		_, err = c.eks.ListAccessEntries(t.Context(), &eks.ListAccessEntriesInput{ClusterName: aws.String("hub")})
		wantCode(t, err, "AccessDeniedException", "eks:ListAccessEntries")
		_, err = c.iam.ListRoles(t.Context(), nil)
		wantCode(t, err, "AccessDenied", "iam:ListRoles")
	}
}

// TestBoundary_ConditionKey verifies that the condition is about the boundary that a role gets, or about the one that it has.
func TestBoundary_ConditionKey(t *testing.T) {
	w := newWorld(t)
	ours, other := must(w.hub.AddPolicy("ours", AllowAll))(t), must(w.hub.AddPolicy("other", AllowAll))(t)
	c := w.user(t, w.hub, "creator", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"iam:*","Resource":"*",
		"Condition":{"StringEquals":{"iam:PermissionsBoundary":"`+ours+`"}}}]}`).iam
	create := func(name string, boundary *string) error {
		return second(c.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: aws.String(trust(hubID)), PermissionsBoundary: boundary}))
	}
	wantCode(t, create("a", nil), "AccessDenied", "iam:CreateRole")
	wantCode(t, create("a", &other), "AccessDenied", "iam:CreateRole")
	noError(t, nil, create("a", &ours))
	w.createRole(t, "free")
	for name, works := range map[string]bool{"a": true, "free": false} {
		put := second(c.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{RoleName: &name, PolicyName: aws.String("p"), PolicyDocument: aws.String(AllowAll)}))
		attach := second(c.AttachRolePolicy(t.Context(), &iam.AttachRolePolicyInput{RoleName: &name, PolicyArn: aws.String("arn:aws:iam::aws:policy/AdministratorAccess")}))
		for _, err := range []error{put, attach} {
			if works {
				noError(t, nil, err)
			} else {
				wantCode(t, err, "AccessDenied", "")
			}
		}
		err := second(c.PutRolePermissionsBoundary(t.Context(), &iam.PutRolePermissionsBoundaryInput{RoleName: &name, PermissionsBoundary: &other}))
		wantCode(t, err, "AccessDenied", "iam:PutRolePermissionsBoundary")
		noError(t, nil, second(c.PutRolePermissionsBoundary(t.Context(), &iam.PutRolePermissionsBoundaryInput{RoleName: &name, PermissionsBoundary: &ours})))
	}
}
