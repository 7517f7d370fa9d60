// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

func TestInProcess_WorksInSynctestBubble(t *testing.T) {
	w := newWorld(t)
	config := w.hub.Config(w.hub.Root())
	c := clients{iam: iam.NewFromConfig(config), eks: eks.NewFromConfig(config)}
	synctest.Test(t, func(t *testing.T) {
		// These are requests with a body, with a path and with an error, signed at the time of the bubble.
		made, err := c.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("a"), AssumeRolePolicyDocument: aws.String(trust(hubID))})
		noError(t, nil, err)
		if age := time.Since(*made.Role.CreateDate); age < 0 || age > time.Second {
			t.Errorf("it was created %s ago", age)
		}
		noError(t, nil, second(c.eks.CreateAccessEntry(t.Context(), &eks.CreateAccessEntryInput{
			ClusterName: aws.String("hub"), PrincipalArn: made.Role.Arn, Username: aws.String("a b/ä")})))
		_, err = c.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("b")})
		wantType[*types.NoSuchEntityException](t, err)

		remove := w.Inject(Fault{Err: Cut})
		if _, err := c.iam.ListRoles(t.Context(), nil); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("what is cut off fails with %v", err)
		}
		remove()
		leave := make(chan struct{})
		w.Inject(Fault{Hook: func(Call) error { <-leave; return nil }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := c.iam.ListRoles(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("what hangs fails with %v", err)
		}
		close(leave)
	})
	if e := w.hub.AccessEntries(w.clusterARN)[w.hub.Roles()["a"].ARN]; e.Username != "a b/ä" {
		t.Errorf("the entry is %+v", e)
	}
}

func TestChange_ByOthers(t *testing.T) {
	w := newWorld(t)
	arn := must(w.hub.AddRole(Role{Name: "a", Trust: trust(hubID), Policies: map[string]string{"p": allow("iam:*", "*")}, Tags: map[string]string{"k": "v"}}))(t)
	noError(t, nil, second(w.root.eks.CreateAccessEntry(t.Context(), &eks.CreateAccessEntryInput{ClusterName: aws.String("hub"), PrincipalArn: &arn})))
	before := w.hub.Roles()["a"]

	const admin = "arn:aws:iam::aws:policy/AdministratorAccess"
	noError(t, nil, w.hub.ChangeRole("a", func(r *Role) {
		r.Trust, r.Policies["q"], r.Attached, r.Tags = trust(managedID), AllowAll, []string{admin}, nil
	}))
	after := w.hub.Roles()["a"]
	if after.ID != before.ID || after.Trust != trust(managedID) || len(after.Policies) != 2 || len(after.Attached) != 1 || len(after.Tags) != 0 {
		t.Errorf("the role is %+v", after)
	}
	for what, change := range map[string]func(*Role){
		"a trust in nobody":  func(r *Role) { r.Trust = trust("arn:aws:iam::" + hubID + ":role/none") },
		"half a policy":      func(r *Role) { r.Policies["p"] = "{" },
		"an unknown policy":  func(r *Role) { r.Attached = []string{"arn:aws:iam::aws:policy/None"} },
		"a role of no trust": func(r *Role) { r.Trust = "" },
	} {
		if err := w.hub.ChangeRole("a", change); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if err := w.hub.ChangeRole("b", func(*Role) {}); err == nil {
		t.Error("a role that is not there is changed")
	}

	if !w.hub.ChangeAccessEntry(w.clusterARN, arn, func(e *AccessEntry) { e.Username, e.Type, e.Tags = "x", "EC2_LINUX", nil }) {
		t.Error("there is no entry")
	}
	shown, err := w.root.eks.DescribeAccessEntry(t.Context(), &eks.DescribeAccessEntryInput{ClusterName: aws.String("hub"), PrincipalArn: &arn})
	noError(t, nil, err)
	if e := shown.AccessEntry; *e.Username != "x" || *e.Type != "EC2_LINUX" || len(e.Tags) != 0 {
		t.Errorf("the entry is %+v", e)
	}
	w.hub.RemoveAccessEntry(w.clusterARN, arn)
	if len(w.hub.AccessEntries(w.clusterARN)) != 0 || w.hub.ChangeAccessEntry(w.clusterARN, arn, func(*AccessEntry) {}) {
		t.Error("the entry is left")
	}

	// A deleted role may still be visible for a moment. A new one of the same name is a different role.
	w.hub.RemoveRole("a")
	must(w.hub.AddRole(after))(t)
	if again := w.hub.Roles()["a"]; again.ID != after.ID {
		t.Errorf("the ID is %s, it was %s", again.ID, after.ID)
	}
	w.hub.RemoveRole("a")
	after.ID = ""
	must(w.hub.AddRole(after))(t)
	if again := w.hub.Roles()["a"]; again.ID == before.ID {
		t.Error("another role has the ID")
	}
}
