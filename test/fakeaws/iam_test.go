// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

func TestRole_RoundTrips(t *testing.T) {
	w := newWorld(t)
	document := trust("arn:aws:iam::" + managedID + ":root")
	begin := time.Now().Add(-2 * time.Second)
	made := must(w.root.iam.CreateRole(t.Context(), &iam.CreateRoleInput{
		RoleName: aws.String("ocm-hub-1"), Path: aws.String("/team/"), AssumeRolePolicyDocument: &document,
		Description: aws.String("a <role> & more"), MaxSessionDuration: aws.Int32(7200),
		Tags: []types.Tag{{Key: aws.String("hub_cluster_name"), Value: aws.String("hub")}, {Key: aws.String("empty"), Value: aws.String("")}},
	}))(t).Role
	got := must(w.root.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("OCM-hub-1")}))(t).Role
	for _, role := range []*types.Role{made, got} {
		text := must(url.QueryUnescape(*role.AssumeRolePolicyDocument))(t)
		if *role.Arn != "arn:aws:iam::"+hubID+":role/team/ocm-hub-1" || *role.RoleName != "ocm-hub-1" || *role.Path != "/team/" ||
			*role.Description != "a <role> & more" || *role.MaxSessionDuration != 7200 || text != document ||
			!strings.HasPrefix(*role.RoleId, "AROA") || role.CreateDate.Before(begin) {
			t.Errorf("role %+v, trust %s", role, text)
		}
		if len(role.Tags) != 2 || *role.Tags[0].Key != "hub_cluster_name" || *role.Tags[0].Value != "hub" || *role.Tags[1].Value != "" {
			t.Errorf("tags %v", role.Tags)
		}
	}
	if *made.RoleId != *got.RoleId {
		t.Errorf("ID %s became %s", *made.RoleId, *got.RoleId)
	}
}

func TestRole_ErrorsHaveSDKTypes(t *testing.T) {
	w := newWorld(t)
	w.createRole(t, "r")
	c, name, missing, document := w.root.iam, aws.String("r"), aws.String("missing"), aws.String(allow("eks:*", "*"))
	ctx := t.Context()

	_, err := c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: aws.String("R"), AssumeRolePolicyDocument: aws.String(trust(hubID))})
	wantType[*types.EntityAlreadyExistsException](t, err)
	for _, err := range []error{
		second(c.GetRole(ctx, &iam.GetRoleInput{RoleName: missing})),
		second(c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: missing})),
		second(c.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: missing, PolicyDocument: document})),
		second(c.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: missing, PolicyName: name, PolicyDocument: document})),
		second(c.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: missing, PolicyName: name})),
		second(c.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: name, PolicyName: missing})),
		second(c.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: name, PolicyName: missing})),
		second(c.ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: missing})),
		second(c.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: missing})),
		second(c.TagRole(ctx, &iam.TagRoleInput{RoleName: missing, Tags: []types.Tag{{Key: name, Value: name}}})),
		second(c.UntagRole(ctx, &iam.UntagRoleInput{RoleName: missing, TagKeys: []string{"a"}})),
		second(c.ListRoleTags(ctx, &iam.ListRoleTagsInput{RoleName: missing})),
	} {
		wantType[*types.NoSuchEntityException](t, err)
	}

	noError(t, nil, second(c.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: name, PolicyName: name, PolicyDocument: document})))
	_, err = c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: name})
	wantType[*types.DeleteConflictException](t, err)
	noError(t, nil, second(c.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: name, PolicyName: name})))
	noError(t, nil, second(c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: name})))
	if len(w.hub.Roles()) != 0 {
		t.Errorf("left over: %v", w.hub.Roles())
	}
}

func second[T any](_ T, err error) error { return err }

func TestRolePolicies_ReplaceListAndGet(t *testing.T) {
	w := newWorld(t)
	w.createRole(t, "r")
	c, name := w.root.iam, aws.String("r")
	put := func(policy, document string) error {
		return second(c.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{RoleName: name, PolicyName: &policy, PolicyDocument: &document}))
	}
	for _, policy := range []string{"b", "a", "c", "a"} {
		noError(t, nil, put(policy, allow("eks:Describe*", "*")))
	}
	noError(t, nil, put("a", allow("eks:ListClusters", "arn:aws:eks:us-west-2:"+hubID+":cluster/a b")))
	got := must(c.GetRolePolicy(t.Context(), &iam.GetRolePolicyInput{RoleName: name, PolicyName: aws.String("a")}))(t)
	if text := must(url.QueryUnescape(*got.PolicyDocument))(t); !strings.Contains(text, "cluster/a b") {
		t.Errorf("policy %s", text)
	}
	var names []string
	pages := iam.NewListRolePoliciesPaginator(c, &iam.ListRolePoliciesInput{RoleName: name, MaxItems: aws.Int32(2)})
	for pages.HasMorePages() {
		names = append(names, must(pages.NextPage(t.Context()))(t).PolicyNames...)
	}
	if !reflect.DeepEqual(names, []string{"a", "b", "c"}) {
		t.Errorf("policies %v", names)
	}
	if attached := must(c.ListAttachedRolePolicies(t.Context(), &iam.ListAttachedRolePoliciesInput{RoleName: name}))(t); len(attached.AttachedPolicies) != 0 {
		t.Errorf("attached %v", attached.AttachedPolicies)
	}
	wantType[*types.LimitExceededException](t, put("d", allow("eks:"+strings.Repeat("x", inlineQuota), "*")))
	for _, bad := range []string{
		"{", "[]", `{"Version":"2012-10-17"}`, `{"Version":"2013","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}`, trust(hubID),
		strings.Replace(allow("eks:*", "*"), "Allow", "Permit", 1), allow("eks", "*"), allow("eks:*", "cluster/hub"),
		strings.Replace(allow("eks:*", "*"), `"Resource"`, `"Resources"`, 1),
		strings.Replace(allow("eks:*", "*"), `"Resource"`, `"Condition":{"StringLooksLike":{"a":"b"}},"Resource"`, 1),
	} {
		wantType[*types.MalformedPolicyDocumentException](t, put("e", bad))
	}
}

func TestTrustPolicy_RequiresExistingPrincipals(t *testing.T) {
	w := newWorld(t)
	w.createRole(t, "other")
	must(w.hub.AddUser("someone", AllowAll))(t)
	n := 0
	create := func(document string) error {
		n++
		return second(w.root.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String(fmt.Sprintf("r%d", n)), AssumeRolePolicyDocument: &document}))
	}
	for _, principal := range []string{
		"*", hubID, "arn:aws:iam::" + managedID + ":root", "arn:aws:iam::" + hubID + ":role/other", "arn:aws:iam::" + hubID + ":user/someone",
		"arn:aws:sts::" + hubID + ":assumed-role/other/session", w.hub.Roles()["other"].ID,
	} {
		if err := create(trust(principal)); err != nil {
			t.Errorf("%s: %v", principal, err)
		}
	}
	for _, principal := range []string{
		"", "999999999999", "arn:aws:iam::999999999999:root", "arn:aws:iam::" + hubID + ":role/missing", "arn:aws:iam::" + hubID + ":role/*",
		"arn:aws:iam::" + hubID + ":role/path/other", "arn:aws-cn:iam::" + hubID + ":role/other", "AROAUNKNOWN", "arn:aws:iam::" + hubID + ":user/missing",
	} {
		wantType[*types.MalformedPolicyDocumentException](t, create(trust(principal)))
	}
	for _, bad := range []string{allow("sts:AssumeRole", "*"), strings.Replace(trust("*"), "sts:AssumeRole", "s3:GetObject", 1)} {
		wantType[*types.MalformedPolicyDocumentException](t, create(bad))
	}
	wantType[*types.LimitExceededException](t, create(strings.Replace(trust("*"), `"Effect"`, `"Sid":"`+strings.Repeat("x", trustQuota)+`","Effect"`, 1)))
}

func TestTrustPolicy_DeletedPrincipalBecomesUniqueID(t *testing.T) {
	w := newWorld(t)
	w.createRole(t, "caller")
	id := w.hub.Roles()["caller"].ID
	document := trust("arn:aws:iam::" + hubID + ":role/caller")
	noError(t, nil, second(w.root.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("target"), AssumeRolePolicyDocument: &document})))
	read := func() string {
		out := must(w.root.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("target")}))(t)
		return must(url.QueryUnescape(*out.Role.AssumeRolePolicyDocument))(t)
	}
	if read() != document {
		t.Errorf("trust policy %s", read())
	}
	w.hub.RemoveRole("caller")
	w.createRole(t, "caller") // a different role of that name
	if want := trust(id); read() != want {
		t.Errorf("trust policy %s, want %s", read(), want)
	}
	noError(t, nil, second(w.root.iam.UpdateAssumeRolePolicy(t.Context(), &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String("target"), PolicyDocument: &document})))
	if read() != document {
		t.Errorf("trust policy %s after the update", read())
	}
}

func TestRoleTags_KeysAreCaseInsensitive(t *testing.T) {
	w := newWorld(t)
	w.createRole(t, "r")
	c, name := w.root.iam, aws.String("r")
	tag := func(pairs ...string) error {
		in := &iam.TagRoleInput{RoleName: name}
		for i := 0; i < len(pairs); i += 2 {
			in.Tags = append(in.Tags, types.Tag{Key: &pairs[i], Value: &pairs[i+1]})
		}
		return second(c.TagRole(t.Context(), in))
	}
	noError(t, nil, tag("Team", "a", "stage", "b", "gone", "c"))
	noError(t, nil, tag("team", "d"))
	noError(t, nil, second(c.UntagRole(t.Context(), &iam.UntagRoleInput{RoleName: name, TagKeys: []string{"GONE", "missing"}})))
	got := must(c.ListRoleTags(t.Context(), &iam.ListRoleTagsInput{RoleName: name}))(t)
	if len(got.Tags) != 2 || *got.Tags[0].Key != "stage" || *got.Tags[1].Key != "team" || *got.Tags[1].Value != "d" {
		t.Errorf("tags %v", got.Tags)
	}
	wantType[*types.InvalidInputException](t, tag("a", "1", "A", "2"))
	wantType[*types.InvalidInputException](t, tag("aws:a", "1"))
	wantCode(t, tag("a<b", "1"), "ValidationError", "Tags.member.1.Key")
	for i := range 48 {
		noError(t, nil, tag(fmt.Sprint("k", i), ""))
	}
	wantType[*types.LimitExceededException](t, tag("one-more", ""))
}

func TestListRoles_PaginationByPath(t *testing.T) {
	w := newWorld(t)
	for i := range 7 {
		must(w.hub.AddRole(Role{Name: fmt.Sprintf("R%d", i), Path: []string{"/a/", "/b/"}[i%2], Trust: trust(hubID), Tags: map[string]string{"a": "b"}}))(t)
	}
	var names []string
	pages := iam.NewListRolesPaginator(w.root.iam, &iam.ListRolesInput{PathPrefix: aws.String("/a"), MaxItems: aws.Int32(3)})
	for pages.HasMorePages() {
		for _, role := range must(pages.NextPage(t.Context()))(t).Roles {
			names = append(names, *role.RoleName)
			if len(role.Tags) != 0 {
				t.Errorf("%s has tags %v", *role.RoleName, role.Tags)
			}
		}
	}
	if !reflect.DeepEqual(names, []string{"R0", "R2", "R4", "R6"}) {
		t.Errorf("roles %v", names)
	}
}

func TestCreateRole_IsLimitedByQuota(t *testing.T) {
	w := newWorld(t)
	w.createRole(t, "a")
	w.hub.SetRoleQuota(1)
	_, err := w.root.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("b"), AssumeRolePolicyDocument: aws.String(trust(hubID))})
	wantType[*types.LimitExceededException](t, err)
}

// TestIdentityPolicy_DecidesByActionAndResource uses the specified policy for the hub's own role.
func TestIdentityPolicy_DecidesByActionAndResource(t *testing.T) {
	w := newWorld(t)
	w.createRole(t, "other")
	creator := w.user(t, w.hub, "creator", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow",
		"Action":["iam:CreateRole","iam:DeleteRole","iam:GetRole","iam:PutRolePolicy"],
		"Resource":["arn:aws:iam::`+hubID+`:role/ocm-hub-*","arn:aws:iam::`+hubID+`:policy/ocm-hub-*"]},
		{"Effect":"Deny","Action":"iam:*","Resource":"*","Condition":{"StringEquals":{"aws:username":"someone else"}}}]}`)
	create := func(in iam.CreateRoleInput) error {
		in.AssumeRolePolicyDocument = aws.String(trust(hubID))
		return second(creator.iam.CreateRole(t.Context(), &in))
	}
	noError(t, nil, create(iam.CreateRoleInput{RoleName: aws.String("ocm-hub-1")}))
	noError(t, nil, second(creator.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("ocm-hub-1")})))
	denied := "User: arn:aws:iam::" + hubID + ":user/creator is not authorized to perform: iam:"
	wantCode(t, create(iam.CreateRoleInput{RoleName: aws.String("hub-1")}), "AccessDenied", denied+"CreateRole")
	wantCode(t, create(iam.CreateRoleInput{RoleName: aws.String("ocm-hub-2"), Path: aws.String("/x/")}), "AccessDenied", denied+"CreateRole")
	wantCode(t, create(iam.CreateRoleInput{RoleName: aws.String("ocm-hub-2"), Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}}),
		"AccessDenied", denied+"TagRole on resource: arn:aws:iam::"+hubID+":role/ocm-hub-2")
	wantCode(t, second(creator.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("other")})), "AccessDenied", denied+"GetRole")
	wantCode(t, second(creator.iam.TagRole(t.Context(), &iam.TagRoleInput{RoleName: aws.String("ocm-hub-1"), Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}})), "AccessDenied", denied+"TagRole")
	wantCode(t, second(creator.iam.ListRoles(t.Context(), nil)), "AccessDenied", denied+"ListRoles")

	w.createRole(t, "ocm-hub-3")
	denier := w.user(t, w.hub, "denier", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"},
		{"Effect":"Deny","NotAction":"iam:Get*","NotResource":"arn:aws:iam::*:role/ocm-hub-?"}]}`)
	noError(t, nil, second(denier.iam.DeleteRole(t.Context(), &iam.DeleteRoleInput{RoleName: aws.String("ocm-hub-3")})))
	noError(t, nil, second(denier.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("other")})))
	wantCode(t, second(denier.iam.DeleteRole(t.Context(), &iam.DeleteRoleInput{RoleName: aws.String("other")})), "AccessDenied", "iam:DeleteRole")
}
