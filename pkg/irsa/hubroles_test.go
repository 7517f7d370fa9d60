// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package irsa

import (
	"slices"
	"strings"
	"testing"
)

func TestParseRolePath(t *testing.T) {
	longest := "/" + strings.Repeat("a", 510) + "/"
	for path, want := range map[string]RolePath{"": "", "/": "", "/clusterhub/": "/clusterhub/", "/a/B-1/_+=,.@/": "/a/B-1/_+=,.@/", longest: RolePath(longest)} {
		if got, err := ParseRolePath(path); err != nil || got != want {
			t.Errorf("%q: got %q, %v", path, got, err)
		}
	}
	for path, want := range map[string]string{
		"clusterhub": "begin and end with a slash", "/clusterhub": "begin and end with a slash", "clusterhub/": "begin and end with a slash",
		"//": "two slashes", "/a//b/": "two slashes", "/a b/": "letters, digits", "/*/": "letters, digits", "/a?/": "letters, digits", "/${aws:x}/": "letters, digits",
		"/a'/": "letters, digits", "/ü/": "letters, digits", "/a\n/": "letters, digits", "/a/\n": "begin and end", "/" + strings.Repeat("a", 511) + "/": "513 characters",
	} {
		_, err := ParseRolePath(path)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 500 {
			t.Errorf("%q: got %v, want %q", path, err, want)
		}
	}
}

func FuzzParseRolePath(f *testing.F) {
	f.Add("/clusterhub/")
	f.Add("/*/")
	f.Fuzz(func(t *testing.T, path string) {
		got, err := ParseRolePath(path)
		if err != nil {
			return
		}
		if path != "" && got.String() != path || strings.ContainsAny(string(got), "*?$'\"\\ ") || len(path) > 512 {
			t.Errorf("%q is read as %q", path, got)
		}
	})
}

func TestCheckBoundary(t *testing.T) {
	hub := newIdentity(t).Hub
	for _, arn := range []string{"", "arn:aws:iam::123456789012:policy/limits", "arn:aws:iam::123456789012:policy/team/a/limits_+=,.@-1", "arn:aws:iam::aws:policy/PowerUserAccess"} {
		if err := CheckBoundary(arn, hub); err != nil {
			t.Errorf("%q: %v", arn, err)
		}
	}
	for arn, want := range map[string]string{
		"limits": "it is not an ARN", "arn:aws:iam::123456789012": "it is not an ARN",
		"arn:aws-cn:iam::123456789012:policy/limits":                    `partition is "aws-cn"`,
		"arn:aws:s3::123456789012:policy/limits":                        "not of IAM",
		"arn:aws:iam:us-west-2:123456789012:policy/limits":              "not of IAM",
		"arn:aws:iam::210987654321:policy/limits":                       `of the account "210987654321"`,
		"arn:aws:iam::*:policy/limits":                                  `of the account "*"`,
		"arn:aws:iam::123456789012:role/limits":                         `it names "role/limits"`,
		"arn:aws:iam::123456789012:policy":                              `it names "policy"`,
		"arn:aws:iam::123456789012:policyx/limits":                      "is not the path and the name",
		"arn:aws:iam::123456789012:policy/":                             "is not the path and the name",
		"arn:aws:iam::123456789012:policy/*":                            "is not the path and the name",
		"arn:aws:iam::123456789012:policy//limits":                      "is not the path and the name",
		"arn:aws:iam::123456789012:policy/a\nb":                         "is not the path and the name",
		"arn:aws:iam::123456789012:policy/" + strings.Repeat("a", 129):  "is not the path and the name",
		"arn:aws:iam::123456789012:policy/" + strings.Repeat("a", 2048): "IAM allows 2048",
	} {
		err := CheckBoundary(arn, hub)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 800 {
			t.Errorf("%q: got %v, want %q", arn, err, want)
		}
	}
}

func TestHubPath_InARNAndNotInAWSAuth(t *testing.T) {
	i := newIdentity(t)
	plain := i.HubRoleARN()
	i.HubPath = "/clusterhub/"
	if got := i.HubRoleARN(); got != strings.Replace(plain, ":role/", ":role/clusterhub/", 1) || i.MappedRoleARN() != plain {
		t.Errorf("got %s, and %s in aws-auth", got, i.MappedRoleARN())
	}
	if !strings.Contains(i.ManagedAccessPolicy().JSON(), i.HubRoleARN()) {
		t.Error("the agent's role may become another role")
	}
}

// The rights to create roles, and to grant them rights, are limited to the path and to the boundary.
func TestCreatorPolicy_RestrictsPathAndBoundary(t *testing.T) {
	hub, boundary := newIdentity(t).Hub, "arn:aws:iam::123456789012:policy/limits"
	for _, s := range CreatorPolicy(hub, HubRoles{Path: "/a/", Boundary: boundary, AccessEntries: true}).Statement {
		for _, action := range []string{"iam:CreateRole", "iam:PutRolePolicy", "iam:PutRolePermissionsBoundary"} {
			if slices.Contains(s.Action, action) && !slices.Equal(s.Condition["StringEquals"]["iam:PermissionsBoundary"], Values{boundary}) {
				t.Errorf("%s: without the boundary, too", action)
			}
		}
		for _, resource := range s.Resource {
			if strings.Contains(resource, ":iam:") && !strings.HasSuffix(resource, ":role/a/ocm-hub-*") && !slices.Equal(s.Action, Values{"iam:GetRole"}) {
				t.Errorf("%v of %s", s.Action, resource)
			}
		}
		if slices.Contains(s.Action, "eks:CreateAccessEntry") && !slices.Equal(s.Condition["ArnLike"]["eks:principalArn"], Values{"arn:aws:iam::123456789012:role/a/ocm-hub-*"}) {
			t.Error("entries of other principals may be made")
		}
	}
	if strings.Contains(CreatorPolicy(hub, HubRoles{Path: "/a/"}).JSON(), "oundary") {
		t.Error("without a boundary, none is needed")
	}
}
